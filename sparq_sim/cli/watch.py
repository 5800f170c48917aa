"""The command that shows a running study or a live play in a browser: `watch`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from sparq_sim.cli.options import AllowImport, OpenPage
from sparq_sim.cli.output import say

__all__ = ["watch"]


def watch(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY-OR-JOURNAL", help="The folder of a study, or the journal of a play."
        ),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; one that is free by default.")
    ] = 0,
    every: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two looks at what is new.")
    ] = 1.0,
    open_: OpenPage = False,
    allow_import: AllowImport = False,
) -> None:
    """Show a running study or a live play in a browser, and keep it up to date.

    The page is served on this machine only, to those who know the address that is printed. Nothing
    is written. Ctrl-C ends it.
    """
    from sparq_sim.live.watch.open import open_watched
    from sparq_sim.live.watch.screen import Screen
    from sparq_sim.live.watch.server import WatchServer

    screen = Screen(open_watched(what, allow_import=allow_import), every=every)
    # Also where a script has started it in the background, which has Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with WatchServer(screen, port=port) as server:
        try:
            say(f"Watching {what} at {server.address}")
            say("Ctrl-C ends it.")
            if open_:
                typer.launch(server.address)
            server.serve_forever()
        except KeyboardInterrupt:
            say("Ended.")
