"""``ina infer``: inference that no host conducts."""

from __future__ import annotations

import typer

from ina.cli.lazy import Lazy, lazy_group

MEMBERS = {
    "check": Lazy("ina.cli.infer.check", "Check a plan: shapes, sums that fit, who has what."),
    "quantise": Lazy("ina.cli.infer.quantise", "Make a plan of a trained network of layers."),
    "places": Lazy("ina.cli.infer.places", "Write where a plan's nodes are, and their secret."),
    "serve": Lazy("ina.cli.infer.serve", "Run a plan's nodes: all here, or one."),
    "send": Lazy("ina.cli.infer.send", "Ask a plan, and check its answers if you like."),
}

app = typer.Typer(
    cls=lazy_group(MEMBERS),
    help="Inference over nodes that packets lead through, summed in the switch.",
    no_args_is_help=True,
)


@app.callback()
def _infer() -> None:
    """Inference over nodes that packets lead through, summed in the switch."""
