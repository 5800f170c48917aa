"""The command `serve-expert`: put an expert behind HTTP, MQTT or pipes."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.options import AllowImport, AllowOutside, AllowPrograms, load_scenario
from sparq_sim.cli.output import emit, say
from sparq_sim.errors import PluginError, SparqError

if TYPE_CHECKING:
    from sparq_sim.domain import Domain
    from sparq_sim.remote.mqtt import MqttAddress
    from sparq_sim.remote.serve.hosting import HostedExpert

__all__ = ["serve_expert"]

_TOKEN = "SPARQ_TOKEN"
"""The environment variable of the token, unless another is named."""


@dataclass(frozen=True, slots=True)
class _Door:
    """How an expert is to be reached."""

    http: int | None
    host: str
    token_env: str
    no_token: bool
    mqtt: MqttAddress | None
    lines: bool


def serve_expert(
    kind: Annotated[str, typer.Argument(help="The expert; `sparq-sim list` shows all kinds.")],
    http: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="PORT", help="Serve over HTTP; 0 for a free port."),
    ] = None,
    mqtt: Annotated[
        str | None, typer.Option(metavar="HOST[:PORT]", help="Serve over MQTT, at this broker.")
    ] = None,
    topic: Annotated[
        str, typer.Option(help="The topic of MQTT to which questions are published.")
    ] = "",
    lines: Annotated[
        bool, typer.Option("--lines", help="Serve lines of JSON, from stdin to stdout.")
    ] = False,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="FIELD=VALUE", help="Set a field of the expert. May be repeated."
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="A scenario file, or the name of a bundled one, whose environment the expert "
            "measures; by default the environment `synthetic`."
        ),
    ] = None,
    along: Annotated[
        bool,
        typer.Option(
            "--along", help="Run the scenario's experts along, for an expert that asks them."
        ),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The seed; by default that of the scenario, or 0.")
    ] = None,
    replication: Annotated[int, typer.Option(min=0, help="Which landscape of the seed.")] = 0,
    host: Annotated[
        str, typer.Option(help="The address on which HTTP listens; by default this machine only.")
    ] = "127.0.0.1",
    token_env: Annotated[
        str,
        typer.Option(
            metavar="VARIABLE",
            help="The environment variable with the bearer token that askers over HTTP must have; "
            f"by default {_TOKEN}, and where that is not set, a new token is made and shown.",
        ),
    ] = "",
    no_token: Annotated[
        bool,
        typer.Option("--no-token", help="Answer any program of this machine, without a token."),
    ] = False,
    version: Annotated[str, typer.Option(help="The version of MQTT: 5 or 3.1.1.")] = "5",
    username_env: Annotated[
        str, typer.Option(metavar="VARIABLE", help="The variable with the user at the broker.")
    ] = "",
    password_env: Annotated[
        str, typer.Option(metavar="VARIABLE", help="The variable with the password of the user.")
    ] = "",
    tls: Annotated[
        bool, typer.Option("--tls", help="Encrypt the connection to the broker.")
    ] = False,
    ca_file: Annotated[
        Path | None, typer.Option(help="Certificates (PEM) that vouch for the broker.")
    ] = None,
    allow_import: AllowImport = False,
    allow_programs: AllowPrograms = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Serve an expert over HTTP, MQTT or pipes, in the wire format, until Ctrl-C.

    It answers a question as it would in a simulated play, at the time of the asker's play.
    """
    address = _read_address(
        mqtt,
        topic,
        version=version,
        username_env=username_env,
        password_env=password_env,
        tls=tls,
        ca_file=ca_file,
    )
    door = _Door(http, host, token_env, no_token, address, lines)
    _check_door(door)
    hosted = _host(
        kind,
        fields or [],
        scenario,
        along=along,
        seed=seed,
        replication=replication,
        allow_import=allow_import,
        allow_programs=allow_programs,
        allow_outside=allow_outside,
    )
    try:
        asyncio.run(_serve(hosted, door))
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("Stopped.", err=True)


def _check_door(door: _Door) -> None:
    ways = [door.http is not None, door.mqtt is not None, door.lines]
    if sum(ways) != 1:
        raise SparqError(
            "say how to serve it, in one way: --http 8765, --mqtt localhost:1883 --topic lab, or "
            "--lines"
        )
    if door.token_env and door.http is None:
        raise SparqError("--token-env is for --http; a broker has users, see --username-env")
    if door.no_token and (door.http is None or door.token_env):
        raise SparqError("--no-token is for --http, in place of --token-env")


def _read_address(mqtt: str | None, topic: str, **fields: object) -> MqttAddress | None:
    from pydantic import ValidationError

    from sparq_sim.remote.mqtt import MqttAddress

    if mqtt is None:
        if topic:
            raise SparqError("--topic is for --mqtt; give the broker, as --mqtt localhost:1883")
        return None
    host, _, port = mqtt.rpartition(":") if ":" in mqtt else (mqtt, "", "")
    if port and not port.isdecimal():
        raise SparqError(f"--mqtt {mqtt}: {port!r} is no port; give it as --mqtt localhost:1883")
    if not topic:
        raise SparqError("--mqtt needs --topic, to which questions are published, as --topic lab")
    try:
        return MqttAddress.model_validate(
            {"host": host, "port": int(port) if port else None, "topic": topic, **fields}
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"--{str(name).replace('_', '-')}: " for name in first["loc"])
        raise SparqError(f"{where}{first['msg'].removeprefix('Value error, ')}") from None


def _host(
    kind: str,
    fields: list[str],
    source: str | None,
    *,
    along: bool,
    seed: int | None,
    replication: int,
    allow_import: bool,
    allow_programs: bool,
    allow_outside: bool,
) -> HostedExpert:
    """Make the expert and its surroundings, and refuse what cannot be served."""
    from sparq_sim.remote.serve.hosting import HostedExpert
    from sparq_sim.scenario.loading import make_environment, make_expert
    from sparq_sim.scenario.programs import check_programs

    expert = make_expert(kind, fields, allow_import=allow_import)
    name = kind.rpartition(":")[2]
    loaded = (
        None
        if source is None
        else load_scenario(source, allow_import=allow_import, allow_outside=allow_outside)
    )
    if along and loaded is None:
        raise SparqError("--along needs --scenario, whose experts are run along")
    environment = make_environment("synthetic") if loaded is None else loaded.environment
    if environment.is_real:
        raise SparqError(
            f"{source}: its environment is real, and an expert is served on a simulated one; ask "
            "the real thing itself"
        )
    beside = {}
    if along and loaded is not None:
        beside = {each: (entry.expert, entry.channel) for each, entry in loaded.experts.items()}
        named = {f"experts.{each}": expert for each, (expert, _) in beside.items() if each != name}
        check_programs(named, allowed=allow_programs)
    try:
        expert.check_experts({name, *beside})
    except PluginError as error:
        raise PluginError(
            f"{error}; {kind} asks other experts: serve it with --scenario FILE --along, where "
            "the file has them"
        ) from error
    until = 0.0 if loaded is None else loaded.rules.period * (loaded.rules.most_rounds or 0)
    environment.check_play(until)
    expert.check_play(until)
    return HostedExpert(
        name,
        expert,
        environment,
        seed=(0 if loaded is None else loaded.seed) if seed is None else seed,
        replication=replication,
        beside=beside,
        rules=None if loaded is None else loaded.rules,
    )


async def _serve(hosted: HostedExpert, door: _Door) -> None:
    from sparq_sim.remote.serve.http import serve_http
    from sparq_sim.remote.serve.lines import serve_lines
    from sparq_sim.remote.serve.mqtt import serve_mqtt

    task = asyncio.current_task()
    assert task is not None
    with _ends_by_signals(task.cancel):
        async with hosted, AsyncExitStack() as stack:
            ask = _example(hosted.name, hosted.domain)
            if door.lines:
                if sys.stdin.isatty():  # A person, and not the play whose child this is.
                    _print(_tell_lines(hosted.name), err=True)
                await serve_lines(hosted.answer)
                return
            if door.mqtt is not None:
                link = await stack.enter_async_context(serve_mqtt(hosted.answer, door.mqtt))
                if not link.is_connected:
                    say(
                        f"Note: no connection to the broker {door.mqtt.broker} yet: "
                        f"{link.trouble}; trying again",
                        err=True,
                    )
                _print(_tell_mqtt(hosted.name, door.mqtt, ask))
            else:
                token, told = _find_token(door)
                url = await stack.enter_async_context(
                    serve_http(hosted.answer, host=door.host, port=door.http or 0, token=token)
                )
                variable = "" if door.no_token else door.token_env or _TOKEN
                _print(told + _tell_http(hosted.name, url, ask, variable))
            await asyncio.Event().wait()


def _find_token(door: _Door) -> tuple[str, str]:
    """Return the token that askers must have, and what is told of it if it is a new one."""
    from sparq_sim.remote.secrets import make_token, read_secret

    if door.no_token:
        return "", ""
    if door.token_env or _TOKEN in os.environ:
        return read_secret(door.token_env or _TOKEN), ""
    token = make_token()
    return token, f"Askers need this token, in their environment:\n  export {_TOKEN}={token}\n"


@contextmanager
def _ends_by_signals(end: Callable[[], object]) -> Iterator[None]:
    """Have Ctrl-C and SIGTERM end what is served."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


# What is told at the start


def _print(text: str, *, err: bool = False) -> None:
    for line in text.splitlines():
        (emit if line.startswith(" ") else say)(line, err=err)
    (sys.stderr if err else sys.stdout).flush()


def _example(name: str, domain: Domain) -> str:
    """Return a question that the expert can answer."""
    times = {"asked_at": 0.0, "play_time": 3.0, "unit": 1.0}
    point = domain.cover(1)[0].tolist()
    about = {"source": name, "names": list(domain.names), "points": [point]}
    return json.dumps({"sparq": 1, "type": "ask", "id": "question-1", **about, **times})


def _tell_http(name: str, url: str, ask: str, token_env: str) -> str:
    header = f' -H "Authorization: Bearer ${token_env}"' if token_env else ""
    more = [("token_env", token_env)] if token_env else []
    return (
        f"Serving the expert {name} at {url}; Ctrl-C ends it.\n"
        f"Ask it:\n  curl -s {url}{header} -d {shlex.quote(ask)}\n"
        f"{_tell_table(name, 'http', [('url', url), *more])}"
    )


def _tell_mqtt(name: str, address: MqttAddress, ask: str) -> str:
    host, _, port = address.broker.rpartition(":")
    fields: list[tuple[str, object]] = [("host", host), ("port", int(port))]
    fields += [("topic", address.topic)]
    for field in ("version", "username_env", "password_env", "tls"):
        if (value := getattr(address, field)) != type(address).model_fields[field].default:
            fields.append((field, value))
    told = (
        f"Serving the expert {name} at the broker {address.broker}, topic {address.topic}; "
        "Ctrl-C ends it.\n"
    )
    if address.version == "5" and not (address.username_env or address.tls):
        told += (
            f"Ask it:\n  mosquitto_rr -V 5 -h {host} -p {port} -t {shlex.quote(address.topic)} "
            f"-e {shlex.quote(f'{address.topic}/reply/me')} -m {shlex.quote(ask)}\n"
        )
    return told + _tell_table(name, "mqtt", fields)


def _tell_lines(name: str) -> str:
    told = f"Serving the expert {name} over pipes; the end of stdin (Ctrl-D) ends it.\n"
    return told + _tell_table(name, "program", [("command", sys.argv)])


def _tell_table(name: str, kind: str, fields: list[tuple[str, object]]) -> str:
    """Return the table of a scenario file that asks the expert."""
    quoted = name if name.replace("-", "").isalnum() and name.isascii() else json.dumps(name)
    lines = [f"[experts.{quoted}]", f'kind = "{kind}"']
    lines += [f"{field} = {json.dumps(value)}" for field, value in fields]
    lines.append("idempotent = true")
    return "In a scenario file:\n" + "\n".join(f"  {line}" for line in lines)
