"""Models are listed as OpenAI lists them, with what is known of them."""

from web_app import open_web_app

from ocp_trio.testing import ScriptedBackend

LISTED = {
    "id": "scripted",
    "object": "model",
    "created": 1_764_460_800,
    "owned_by": "scripted",
    "context_window": 1000,
    "max_output_tokens": 1000,
}


async def test_every_model_is_listed_with_its_window_and_its_longest_answer() -> None:
    async with open_web_app(ScriptedBackend([])) as app:
        assert await app.get("/v1/models") == (200, {"object": "list", "data": [LISTED]})


async def test_one_model_is_described_by_itself() -> None:
    async with open_web_app(ScriptedBackend([])) as app:
        assert await app.get("/v1/models/scripted") == (200, LISTED)


async def test_of_a_model_that_is_only_passed_on_no_figure_is_made_up() -> None:
    without = {name: value for name, value in LISTED.items() if name not in ("context_window", "max_output_tokens")}

    async with open_web_app(ScriptedBackend([])) as app:
        assert await app.get("/v1/models/vendor/other") == (200, without | {"id": "vendor/other"})
