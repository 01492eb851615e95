"""A small SVG writer: boxes with lines of text, arrows. Sizes in px."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

CHARACTER_PX = 7.3  # a monospaced character at 12 px, a little wide: fonts differ
LINE_PX = 17
PAD_PX = 8


@dataclass(frozen=True)
class Line:
    """One line of text; ``style`` is a class of the style sheet."""

    text: str
    style: str = "plain"


@dataclass(frozen=True)
class Box:
    """A box that is as large as its lines, at a place that the layout gives it.

    ``name`` identifies what is drawn (a program can look it up); ``title`` is shown on hovering.
    """

    kind: str
    name: str
    lines: Sequence[Line]
    title: str = ""
    min_width_px: float = 0.0

    @property
    def width_px(self) -> float:
        """Wide enough for the longest line."""
        longest = max((len(line.text) for line in self.lines), default=0)
        return max(longest * CHARACTER_PX + 2 * PAD_PX, self.min_width_px)

    @property
    def height_px(self) -> float:
        """High enough for all lines."""
        return len(self.lines) * LINE_PX + 2 * PAD_PX - 4


_STYLE = """
text { font: 12px "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1b2733; white-space: pre }
.head { font-weight: bold } .big { font-size: 20px; font-weight: bold }
.section { font-size: 15px; font-weight: bold; fill: #44566c } .faint { fill: #5f7186 }
rect { stroke: #6b7c93; rx: 5 } path { fill: none; stroke: #6b7c93; stroke-width: 1.3 }
.area rect { fill: #f6f8fb; stroke: #c5cfdb } .control rect { fill: #fff; stroke: #93a4b8 }
.state rect { fill: #e8eef7 } .table rect { fill: #fff4d6; stroke: #c59b2b }
.register rect { fill: #dff3e4; stroke: #3f9a5b } .counter rect { fill: #f3e6f7; stroke: #9a5bb0 }
.header rect { fill: #e8eef7 } .checksum rect { fill: #fde9e3; stroke: #c9684a }
"""


@dataclass
class Drawing:
    """Elements in the order of painting. ``width_px`` and ``height_px`` grow with them."""

    title: str
    width_px: float = 0.0
    height_px: float = 0.0
    _parts: list[str] = field(default_factory=list)

    def box(self, box: Box, x: float, y: float) -> None:
        """Draws the box with its upper left corner there."""
        self.area(box.kind, box.name, x, y, box.width_px, box.height_px, box.title or box.name)
        for index, line in enumerate(box.lines):
            self.text(line, x + PAD_PX, y + PAD_PX + 10 + index * LINE_PX)

    def area(
        self, kind: str, name: str, x: float, y: float, width: float, height: float, title: str = ""
    ) -> None:
        """Draws an empty box, to put others on."""
        self._parts.append(
            f'<g class="{escape(kind)}" data-name="{escape(name)}"><title>{escape(title)}</title>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/></g>'
        )
        self.width_px = max(self.width_px, x + width)
        self.height_px = max(self.height_px, y + height)

    def text(self, line: Line, x: float, y: float) -> None:
        """Writes a line; ``y`` is where its letters stand."""
        words = escape(line.text)
        large = 1.7 if line.style == "big" else 1.3 if line.style == "section" else 1.0
        self.width_px = max(self.width_px, x + len(line.text) * CHARACTER_PX * large)
        self.height_px = max(self.height_px, y)
        self._parts.append(f'<text class="{line.style}" x="{x:.1f}" y="{y:.1f}">{words}</text>')

    def arrow(self, points: Sequence[tuple[float, float]], both: bool = False) -> None:
        """Draws a line through the points, with a head at its end, or at both ends."""
        way = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        start = ' marker-start="url(#tip)"' if both else ""
        self._parts.append(f'<path d="M{way}" marker-end="url(#tip)"{start}/>')

    def render(self) -> str:
        """Returns the SVG document."""
        width, height = self.width_px + 20, self.height_px + 20
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
                f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
                f"<title>{escape(self.title)}</title><style>{_STYLE}</style>",
                '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
                'markerHeight="7" orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z" '
                'style="fill:#6b7c93"/></marker></defs>',
                f'<rect width="{width:.0f}" height="{height:.0f}" style="fill:#fff;stroke:none"/>',
                *self._parts,
                "</svg>\n",
            ]
        )
