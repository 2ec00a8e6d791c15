"""``/settings``: what an operator may see, and change while the server runs, until it is started anew."""

import logging
from dataclasses import Field, fields
from typing import Any, Final, NotRequired, TypedDict

import msgspec
from quart import request

from ocp_trio.errors import InvalidRequestError, SettingError
from ocp_trio.openai.decoding import decode
from ocp_trio.openai.errors import error_response
from ocp_trio.settings import Settings, descriptions, read_setting
from ocp_trio.web.callers import Caller, require_admin
from ocp_trio.web.site import Site

__all__ = ["Change", "SettingChanges", "SettingDescription", "change", "describe"]

logger = logging.getLogger("ocp_trio.web")

_decoder = msgspec.json.Decoder(dict[str, Any])


class SettingDescription(TypedDict):
    """A setting: its value as it is written, and what it may be."""

    value: Any
    type: str
    min: int | None
    max: int | None
    unit: str | None
    desc: str
    env: str
    restart: bool
    choices: NotRequired[tuple[str, ...]]


class Change(TypedDict, total=False):
    """What became of one change."""

    ok: bool
    value: Any
    error: str


class SettingChanges(TypedDict):
    """What became of all of them; ``current`` has every setting that may be changed."""

    results: dict[str, Change]
    errors: list[str]
    current: dict[str, Any]
    error: NotRequired[Any]


def _name(field: str) -> str:
    """Return a field's name as the Node proxy writes names."""
    first, *rest = field.split("_")
    return "".join([first, *("TTL" if word == "ttl" else word.capitalize() for word in rest)])


_SHOWN: Final[dict[str, Field[Any]]] = {_name(each.name): each for each in fields(Settings) if each.repr}
"""All settings but the secret ones."""


def _show(setting: Field[Any], settings: Settings) -> Any:  # noqa: ANN401 (JSON)
    return setting.metadata["kind"].show(getattr(settings, setting.name))


def describe(site: Site, caller: Caller) -> dict[str, SettingDescription]:
    """Tell all settings but the secret ones; ``restart`` says that a change needs one."""
    require_admin(caller)
    return {name: _describe(setting, site.settings) for name, setting in _SHOWN.items()}


def _describe(setting: Field[Any], settings: Settings) -> SettingDescription:
    kind = setting.metadata["kind"]
    described: SettingDescription = {
        "value": _show(setting, settings),
        "type": kind.type,
        "min": kind.low,
        "max": kind.high,
        "unit": kind.unit,
        "desc": descriptions().get(setting.name, ""),
        "env": setting.metadata["name"],
        "restart": not setting.metadata["live"],
    }
    if kind.choices:
        described["choices"] = kind.choices
    return described


async def change(site: Site, caller: Caller) -> tuple[SettingChanges, int]:
    """Change settings for the requests that come: each that is fit, whatever becomes of the others.

    The status is 200 if all were changed, 400 if none was, else 207.
    """
    require_admin(caller)
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    results: dict[str, Change] = {}
    values: dict[str, Any] = {}
    for name, value in decode(body, _decoder).items():
        try:
            setting = _find(name, site)
            values[setting.name] = read_setting(setting, _text(setting, value))
        except (InvalidRequestError, SettingError) as error:
            results[name] = {"error": str(error)}
        else:
            results[name] = {"ok": True, "value": setting.metadata["kind"].show(values[setting.name])}
    _apply(site, values)
    errors = [each["error"] for each in results.values() if "error" in each]
    current = {name: _show(each, site.settings) for name, each in _SHOWN.items() if each.metadata["live"]}
    answer: SettingChanges = {"results": results, "errors": errors, "current": current}
    if values:
        return answer, 207 if errors else 200
    refusal = InvalidRequestError("; ".join(errors) or "name a setting to change", code="unsupported_value")
    return {**msgspec.json.decode(error_response(refusal).body), **answer}, 400


def _find(name: str, site: Site) -> Field[Any]:
    setting = _SHOWN.get(name)
    if setting is None:
        raise InvalidRequestError(f"there is no setting {name[:100]!r}")
    if not setting.metadata["live"]:
        raise InvalidRequestError(f"{name} needs a restart: it is read from {setting.metadata['name']} at the start")
    if setting.name == "cache_ttl" and site.store is None:
        raise InvalidRequestError(f"{name} needs a store, and a restart: this server was started without one")
    return setting


def _text(setting: Field[Any], value: object) -> str:
    """Return a JSON value as the environment would have it.

    Raises:
        SettingError: it is of another type.
    """
    match setting.metadata["kind"].type, value:
        case (_, str(text)):
            return text
        case ("boolean", bool()):
            return str(int(value))
        case ("integer" | "boolean", int() | float()) if not isinstance(value, bool):
            return str(value)
        case (expected, _):
            raise SettingError(setting.metadata["name"], value, f"this is no {expected}")


def _apply(site: Site, values: dict[str, Any]) -> None:
    changed = {name: value for name, value in values.items() if getattr(site.settings, name) != value}
    if changed:
        site.change_settings(changed)
        # Names only: a value may be a prompt.
        logger.info("settings_changed", extra={"settings": sorted(map(_name, changed))})
