"""``gauge-mc mcp``: tools in a folder, by lines of JSON and by the client of the official SDK."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gauge_mc
from gauge_mc.cli import COMMANDS
from gauge_mc.cli.tools import ServedFolder, Tool
from gauge_mc.errors import UsageError
from tests.calls import call, make_run
from tests.fits.tables import write_tables
from tests.patience import PATIENCE

COMMAND = [sys.executable, "-m", "gauge_mc", "mcp"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(gauge_mc.__file__).parent.parent)}

pytestmark = pytest.mark.kernels


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a run and tables, beside a folder that must not be seen."""
    parent = tmp_path_factory.mktemp("mcp")
    folder = parent / "work"
    (folder / "tables").mkdir(parents=True)
    write_tables(folder / "tables")
    make_run(folder / "run")
    make_run(parent / "secret")
    (folder / "link").symlink_to(parent / "secret")
    (folder / "within").mkdir()
    (folder / "within" / "configs").symlink_to(parent / "secret" / "configs")
    (folder / "out.toml").write_text(f'output = "{parent / "secret"}"\n')
    return folder


@pytest.fixture
def served(made):
    return ServedFolder(made.resolve(), writes=False)


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def use(number, tool, **arguments):
    return request(number, "tools/call", name=tool, arguments=arguments)


class Talk:
    """A server in a process of its own, to which lines are written."""

    def __init__(self, folder, *words):
        self._process = subprocess.Popen(
            [*COMMAND, folder, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
        )

    def __call__(self, message):
        """Return the answer to a message, or to a line of bytes."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def tell(self, message):
        """Send a message that has no answer."""
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def end(self):
        self._process.stdin.close()
        assert self._process.wait(PATIENCE) == 0
        rest = self._process.stdout.read()
        self._process.stdout.close()
        return rest


@pytest.fixture(scope="module")
def talk(made):
    server = Talk(made)
    yield server
    assert server.end() == b""


def test_tools_are_the_commands_with_their_options(served):
    tools = {one["name"]: one for one in served.list_tools({}, None)["tools"]}
    assert {*tools} == {name for name, one in COMMANDS.items() if one.reads}
    assert {"info", "status", "verify", "doctor", "fit"} <= {*tools}
    for one in tools.values():
        assert {"json", "help", "follow", "serve", "install"}.isdisjoint(
            one["inputSchema"]["properties"]
        )
        assert one["annotations"] == {"readOnlyHint": True}
    fit = tools["fit"]["inputSchema"]
    assert fit["required"] == ["what"]
    assert "creutz" in fit["properties"]["what"]["enum"]
    assert fit["properties"]["run"]["type"] == "array"
    assert fit["properties"]["skip"]["type"] == ["integer", "string"]
    assert "output" not in fit["properties"]
    assert tools["verify"]["inputSchema"]["properties"]["regenerate"]["type"] == "integer"


def test_everything_but_the_server_itself_is_offered_for_writing(made):
    served = ServedFolder(made.resolve(), writes=True)
    tools = {one["name"]: one for one in served.list_tools({}, None)["tools"]}
    assert {*tools} == {*COMMANDS} - {"mcp"}
    assert "output" in tools["fit"]["inputSchema"]["properties"]
    assert tools["generate"]["inputSchema"]["properties"]["beta"]["type"] == "number"
    assert tools["generate"]["inputSchema"]["properties"]["strict"]["type"] == "boolean"


def test_words_of_a_call():
    words = Tool("fit").words({"run": ["-a", "b"], "what": "creutz", "skip": 3}, True)
    assert words == ["fit", "--skip=3", "--", "creutz", "-a", "b"]
    assert Tool("status").words({}, False) == ["status"]
    for bad in ({"nothing": 1}, {"path": [1]}, {"path": None}, {"path": True}, {"follow": True}):
        with pytest.raises(UsageError):
            Tool("status").words(bad, False)
    with pytest.raises(UsageError, match="is true or false"):
        Tool("generate").words({"strict": "yes"}, True)


@pytest.mark.parametrize(
    "value",
    [
        "..",
        "/",
        "/etc/passwd",
        "run/../../secret",
        "link",
        "link/run.toml",
        "within",
        ".",
        "mesons:1:propagators=../x",
        "a,/etc",
        "run\0",
    ],
)
def test_what_leads_out_of_the_folder_is_refused(served, value):
    with pytest.raises(UsageError, match="outside of"):
        served.check(value)
    answer = served.call({"name": "info", "arguments": {"path": value}}, None)
    assert answer["isError"]
    assert "outside of" in answer["content"][0]["text"]


@pytest.mark.parametrize("value", ["run", "2.2:2.4:0.1", "new/folder", "run/configs", "4x4x4x4"])
def test_what_stays_in_the_folder_is_not_refused(served, value):
    served.check(value)


def test_cards_lead_nowhere_else(made):
    served = ServedFolder(made.resolve(), writes=True)
    answer = served.call({"name": "generate", "arguments": {"card": "out.toml"}}, None)
    assert "outside of the folder" in answer["content"][0]["text"]
    answer = served.call({"name": "generate", "arguments": {"card": "none.toml"}}, None)
    assert answer["isError"]


def test_resources(served):
    listed = [one["uri"] for one in served.list_resources({}, None)["resources"]]
    read = {uri: served.read_resource({"uri": uri}, None)["contents"][0] for uri in listed}
    schema = json.loads(read["gauge-mc://card/schema"]["text"])
    assert schema["title"] == "Run card of gauge-mc"
    words = json.loads(read["gauge-mc://json/info"]["text"])
    assert "configs" in words or "parameters" in words
    for bad in ("gauge-mc://json/generate", "file:///etc/passwd", None, 3):
        with pytest.raises(UsageError, match="There is no resource"):
            served.read_resource({"uri": bad}, None)


def test_it_greets_and_answers(talk):
    found = talk(request(1, "initialize", protocolVersion="2025-06-18"))["result"]
    assert (found["protocolVersion"], found["serverInfo"]["name"]) == ("2025-06-18", "gauge-mc")
    talk.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert talk(request("a", "ping")) == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert talk(request(2, "initialize", protocolVersion="1"))["result"]["protocolVersion"] > "2025"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100000, -32700),
        (b"[]", -32600),
        (b"3", -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', -32602),
    ],
)
def test_malformed_requests_are_errors(talk, line, code):
    assert talk(line)["error"]["code"] == code
    assert talk(request(9, "ping"))["result"] == {}


def test_calls(talk, made):
    found = talk(use(3, "info", path="run"))["result"]["structuredContent"]
    assert (found["command"], found["run"]) == ("info", "run")
    before = sorted(path.name for path in (made / "tables").iterdir())
    result = talk(use(4, "fit", what="creutz", run=["tables"]))["result"]
    assert result["structuredContent"]["file"] is None
    assert result["structuredContent"]["chi"] == json.loads(result["content"][0]["text"])["chi"]
    assert sorted(path.name for path in (made / "tables").iterdir()) == before
    failed = talk(use(5, "info", path="nothing"))["result"]
    assert failed["isError"]
    assert failed["content"][0]["text"].startswith("nothing cannot be read")
    refused = talk(use(6, "generate", output="new"))["error"]
    assert "needs --write" in refused["message"]
    assert "There is no tool" in talk(use(7, "mcp"))["error"]["message"]
    odd = talk(request(8, "tools/call", name="info", arguments=[1]))["result"]
    assert odd["isError"]


@pytest.mark.slow
def test_a_run_that_is_cancelled_writes_a_checkpoint(tmp_path):
    server = Talk(tmp_path, "--write")
    values = {"lattice": "4x4x4x4", "configs": 10**6, "format": "none", "backend": "cpu"}
    server.tell(use(1, "generate", output="run", threads=1, thermalize=1, **values))
    while not (tmp_path / "run" / "checkpoint").exists():
        assert server(request(2, "ping"))["result"] == {}
    server.tell({"method": "notifications/cancelled", "params": {"requestId": 1}})
    rest = json.loads(server.end())
    assert "Stopped by SIGTERM" in str(rest) or rest["result"]["structuredContent"]["stopped"]


@pytest.mark.slow
def test_the_client_of_the_sdk(made):
    pytest.importorskip("mcp")
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def talk():
        command, *words = COMMAND
        how = StdioServerParameters(command=command, args=[*words, str(made)], env=ENVIRONMENT)
        async with stdio_client(how) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            result = await session.call_tool("info", {"path": "run"})
            refused = await session.call_tool("info", {"path": "/etc"})
            listed = (await session.list_resources()).resources
            return [one.name for one in tools], result, refused, len(listed)

    tools, result, refused, resources = asyncio.run(talk())
    assert "info" in tools
    assert json.loads(result.content[0].text)["run"] == "run"
    assert "outside of" in refused.content[0].text
    assert resources == len(tools) + 1


def test_what_is_served_is_listed(made):
    document = json.loads(call("mcp", made, "--json")[0])
    assert document["folder"] == str(made.resolve())
    assert "fit" in document["tools"]
    assert call("mcp", made / "run" / "run.toml")[1] == 2
