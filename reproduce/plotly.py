"""Fetch the script that draws charts from npm: `python -m reproduce.plotly`.

Another version is fetched after its number is put into sparq_sim/report/html/plotly; the digest is
then refused, and the message says which it is.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from sparq_sim.report.html.plotly import DIGEST, FILES, FOLDER, PACKAGE


def fetch(folder: Path) -> list[Path]:
    """Fetch the files of the package into a folder.

    Args:
        folder: Where they are put.

    Returns:
        The files, the script first.
    """
    subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True)
    (package,) = folder.glob("*.tgz")
    with tarfile.open(package) as archive:
        for name in FILES:
            member = archive.extractfile(f"package/{name}")
            if member is None:
                raise SystemExit(f"{PACKAGE} has no file {name!r}")
            (folder / name).write_bytes(member.read())
    return [folder / name for name in FILES]


def main() -> None:
    """Fetch the script, and put it in its place if it is the one that is expected."""
    with TemporaryDirectory() as folder:
        files = fetch(Path(folder))
        digest = sha256(files[0].read_bytes()).hexdigest()
        if digest != DIGEST:
            raise SystemExit(f"the script of {PACKAGE} has the digest {digest}, not {DIGEST}")
        for file in files:
            shutil.copyfile(file, FOLDER / file.name)
    print(f"{PACKAGE}: as before")


if __name__ == "__main__":
    main()
