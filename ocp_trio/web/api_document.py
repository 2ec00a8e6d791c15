"""Describe what is served as an OpenAPI 3.1 document, derived from the routes and from the types that serve them."""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, TypeAlias

import msgspec
from werkzeug.routing import Map, Rule

from ocp_trio import __version__
from ocp_trio.openai.errors import ErrorBody

__all__ = ["Json", "Operation", "build_document", "undescribed"]

Json: TypeAlias = dict[str, Any]

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_UNLISTED = frozenset({"HEAD", "OPTIONS"})
"""Methods that every route has by itself."""
_NO_KEY: Json = {}
_KEYS: tuple[Json, ...] = ({"bearer": []}, {"apiKey": []})
_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}
_REQUEST_ID = {"description": "Names the request in logs.", "required": True, "schema": {"type": "string"}}


class Operation(msgspec.Struct, frozen=True):
    """What the document says of an endpoint beside what its route says.

    Attributes:
        summary: One sentence.
        answer: Type of its answer; None where there is only a stream.
        media: The answer's media type.
        events: Type of the data of each event, if its answer is or can be an event stream.
        statuses: Of success.
        body: Type of the request's body; None where none is read.
        query: Struct of the query's parameters.
        headers: Struct of the headers that it reads.
        admin: Whether only the administrator may call it.
    """

    summary: str
    answer: Any = None
    media: str = "application/json"
    events: Any = None
    statuses: tuple[int, ...] = (200,)
    body: Any = None
    query: type[msgspec.Struct] | None = None
    headers: type[msgspec.Struct] | None = None
    admin: bool = False


def _routes(url_map: Map) -> Iterable[tuple[str, Rule]]:
    """Return each method of each route of the API; the dashboard's page and what feeds it are none."""
    for rule in url_map.iter_rules():
        if rule.endpoint != "static" and not rule.rule.startswith("/dashboard"):
            for method in sorted((rule.methods or set()) - _UNLISTED):
                yield method, rule


def undescribed(url_map: Map, operations: Mapping[str, Operation]) -> list[str]:
    """Return the routes that no operation describes, each with its method."""
    return [f"{method} {rule.rule}" for method, rule in _routes(url_map) if rule.endpoint not in operations]


def build_document(
    url_map: Map, operations: Mapping[str, Operation], *, title: str, public: Iterable[str], keys_required: bool
) -> Json:
    """Build the document.

    Args:
        url_map: The routes.
        operations: What is known of each endpoint, by its name.
        title: Of the API.
        public: Paths that need no key.
        keys_required: Whether all others do; those of the administrator always do.
    """
    schemas = _Schemas(operations.values())
    paths: dict[str, Json] = {}
    for method, rule in _routes(url_map):
        if operation := operations.get(rule.endpoint):
            described = _describe(rule, operation, schemas)
            if rule.rule in public or not (keys_required or operation.admin):
                described["security"] = [_NO_KEY]
            paths.setdefault(_PARAMETER.sub(r"{\1}", rule.rule), {})[method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "security": list(_KEYS),
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "responses": {"Error": _response("What went wrong.", {"application/json": schemas.of(ErrorBody)})},
            "securitySchemes": _SCHEMES,
        },
    }


class _Schemas:
    """The JSON Schema of each type that an operation mentions."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        mentioned = [(each.answer, each.events, each.body, each.query, each.headers) for each in operations]
        types = tuple(dict.fromkeys((ErrorBody, *filter(None, chain.from_iterable(mentioned)))))
        schemas, self.components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
        self._by_type: dict[object, Json] = dict(zip(types, schemas, strict=True))

    def of(self, described: object) -> Json:
        """Return the schema of a type."""
        return self._by_type[described]

    def parameters(self, struct: type[msgspec.Struct], place: str) -> Iterable[Json]:
        """Return a parameter for each field of a struct."""
        own = self.components[self.of(struct)["$ref"].rpartition("/")[2]]
        for name, schema in own["properties"].items():
            yield {"name": name, "in": place, "required": name in own["required"], "schema": schema}


def _describe(rule: Rule, operation: Operation, schemas: _Schemas) -> Json:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(rule.rule)
    ]
    if operation.query:
        parameters += schemas.parameters(operation.query, "query")
    if operation.headers:
        parameters += schemas.parameters(operation.headers, "header")
    content = {}
    if operation.answer:
        content[operation.media] = schemas.of(operation.answer)
    if operation.events:
        content["text/event-stream"] = _event(schemas.of(operation.events))
    described: Json = {
        "operationId": rule.endpoint,
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            **{str(status): _response("Success.", content) for status in operation.statuses},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
    if operation.body:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schemas.of(operation.body)}},
        }
    return described


def _event(data: Json) -> Json:
    """Describe each event of a stream, as OpenAPI 3.2 does: an object with the event's fields."""
    text = {
        "type": "string",
        "anyOf": [{"contentMediaType": "application/json", "contentSchema": data}, {"const": "[DONE]"}],
    }
    return {"type": "object", "properties": {"data": text}, "required": ["data"]}


def _response(description: str, content: Mapping[str, Json]) -> Json:
    return {
        "description": description,
        "headers": {"x-request-id": _REQUEST_ID},
        "content": {media: {"schema": schema} for media, schema in content.items()},
    }
