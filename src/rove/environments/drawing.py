"""Pictures of environments whose states are cells in a row or on a board."""

from collections.abc import Collection, Mapping

import numpy as np

GROUND, CELL, VISITED, AGENT = "#ffffff", "#e9ecf0", "#b5d2ec", "#1f4f8b"
LANDMARK, TEXT = "#2a9d5c", "#1b1e23"
LARGEST, ROW_WIDTH, BOARD_WIDTH = 48.0, 720.0, 480.0
"""Maximum size of a cell, and maximum width of a row and of a board, in pixels."""
MARGIN, LABEL = 12, 20
"""Space around the cells, and the height of a line of labels, in pixels."""
NARROW = 4
"""Width of a cell, in pixels, below which cells are not separated."""
FONT_SIZE = 14


def board(
    cells: tuple[int, ...],
    at: int | None,
    visited: Collection[int],
    landmarks: Mapping[str, int],
    upwards: bool = False,
) -> np.ndarray:
    """Return an RGB image of a row or a board of cells. The cell `at` holds a disc, visited cells
    are tinted, and landmarks are outlined and named: above the board in its upper half, otherwise
    below it. `upwards` draws the first row at the bottom."""
    from PIL import Image, ImageDraw, ImageFont  # imported here because it is rarely used

    *several, columns = cells
    rows = several[0] if several else 1
    width = min(LARGEST, (BOARD_WIDTH if several else ROW_WIDTH) / columns)
    height = width if several else LARGEST

    def corners(cell: int) -> tuple[float, float, float, float]:
        row, column = divmod(cell, columns)
        left, top = MARGIN + column * width, above + (rows - 1 - row if upwards else row) * height
        return left, top, left + width, top + height

    in_upper_half = {name: cell // columns < rows / 2 for name, cell in landmarks.items()}
    above = MARGIN + LABEL * any(in_upper_half.values())
    below = MARGIN + LABEL * (not all(in_upper_half.values()))
    size = round(2 * MARGIN + columns * width), round(above + rows * height + below)
    image = Image.new("RGB", size, GROUND)
    draw = ImageDraw.Draw(image)
    draw.rectangle((MARGIN, above, size[0] - MARGIN, above + rows * height), CELL)
    for cell in visited:
        draw.rectangle(corners(cell), VISITED)
    if width >= NARROW:
        for row in range(rows + 1):
            y = above + row * height
            draw.line((MARGIN, y, size[0] - MARGIN, y), GROUND)
        for column in range(columns + 1):
            x = MARGIN + column * width
            draw.line((x, above, x, above + rows * height), GROUND)
    font = ImageFont.load_default(FONT_SIZE)
    for name, cell in landmarks.items():
        left, top, right, bottom = corners(cell)
        draw.rectangle((left, top, max(left + 2, right - 1), bottom - 1), None, LANDMARK, 2)
        half = font.getlength(name) / 2
        middle = min(max((left + right) / 2, half + 2), size[0] - half - 2)
        anchor, y = ("md", above - 2) if in_upper_half[name] else ("ma", above + rows * height + 2)
        draw.text((middle, y), name, TEXT, font, anchor)
    if at is not None:
        left, top, right, bottom = corners(at)
        x, y = (left + right) / 2, (top + bottom) / 2
        radius = max(3.0, 0.32 * min(width, height))
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), AGENT)
    return np.asarray(image)


def channels(image: np.ndarray) -> np.ndarray:
    """Return an RGB image of an image with any number of channels, each in a different colour, on
    black. Where several are set, the last one is shown."""
    height, width, count = image.shape
    hues = np.arange(count)[:, None] / count + np.array([0, 2, 1]) / 3
    colours = np.clip(np.abs(hues % 1 * 6 - 3) - 1, 0, 1) * 155 + 100
    scaled = image.astype(float) / max(float(np.abs(image).max()), 1e-9)
    last = count - 1 - np.argmax(np.flip(scaled > 0, axis=-1), axis=-1)
    value = np.take_along_axis(scaled, last[..., None], axis=-1)
    picture = (np.clip(value, 0, 1) * colours[last]).astype(np.uint8)
    scale = max(1, int(BOARD_WIDTH / max(height, width)))
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


def captioned(frame: np.ndarray, text: str) -> np.ndarray:
    """Return an RGB image with a line of text below it, wide enough for the text."""
    from PIL import Image, ImageDraw, ImageFont  # imported here because it is rarely used

    font = ImageFont.load_default(FONT_SIZE)
    height, width = frame.shape[:2]
    full = max(width, round(font.getlength(text)) + 2 * MARGIN)
    image = Image.new("RGB", (full, height + LABEL + MARGIN // 2), GROUND)
    image.paste(Image.fromarray(frame), ((full - width) // 2, 0))
    draw = ImageDraw.Draw(image)
    draw.text((MARGIN, height + LABEL // 2 + MARGIN // 4), text, TEXT, font, "lm")
    return np.asarray(image)
