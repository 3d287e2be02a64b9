"""Extract the pictures of the demo's page to docs/figures/demo-*.svg.

rove demo --out FOLDER
python docs/figures/make_demo_pictures.py FOLDER/index.html
"""

import re
import sys
from pathlib import Path

from style import FOLDER, TEXT

NAMES = [f"demo-{name}-{i}" for name in ("curves", "visits", "posterior") for i in (1, 2)]


def main(page: Path) -> None:
    drawings = re.findall(r"<svg.*?</svg>", page.read_text("utf-8"), re.DOTALL)
    for name, drawing in zip(NAMES, drawings, strict=True):
        text = drawing.replace("currentColor", TEXT) + "\n"
        (FOLDER / f"{name}.svg").write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
