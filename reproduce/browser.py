"""The browser that takes pictures and opens pages in tests: where it is, and how it is started.

The environment variables SPARQ_CHROMIUM and SPARQ_CHROMEDRIVER name the two programs. Where one is
not set, its program is the one on the PATH, or else where Debian has it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

VARIABLES = {"SPARQ_CHROMIUM": "chromium", "SPARQ_CHROMEDRIVER": "chromedriver"}
"""Each names a program, by default the one that is called so."""


def find_programs() -> tuple[Path, Path]:
    """Return where Chromium and its driver are, or should be."""
    chromium, driver = (
        Path(os.environ.get(variable) or shutil.which(program) or f"/usr/bin/{program}")
        for variable, program in VARIABLES.items()
    )
    return chromium, driver


def find_absent() -> list[Path]:
    """Return those of the two programs that are not there."""
    return [program for program in find_programs() if not program.is_file()]


@contextmanager
def drive(home: Path, *flags: str, capabilities: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Start Chromium without a window, with an empty *home*, and end it.

    Args:
        home: The folder that Chromium may fill.
        flags: More of its flags.
        capabilities: More for its driver, by name.

    Yields:
        What drives it, of selenium.
    """
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    chromium, driver = find_programs()
    options = ChromeOptions()
    options.binary_location = str(chromium)
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "no-first-run", *flags):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={home}")
    for name, capability in (capabilities or {}).items():
        options.set_capability(name, capability)
    chrome = Chrome(options=options, service=Service(str(driver)))
    try:
        yield chrome
    finally:
        chrome.quit()
