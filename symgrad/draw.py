"""Graphs as pictures: DOT text, and SVG by graphviz where it is installed, else by a layered layout of our own."""

from __future__ import annotations

import html
import itertools
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symgrad.ir import CAPTURED, CONST, INPUT, Node, shown

COLOURS = {None: "#ffffff", "backward": "#fde7d3", "tangents": "#dcebfb"}  # by the pass that wrote a node
INPUT_COLOUR, OUTPUT_LINE = "#e3f2dd", 2.5
CHAR, HEIGHT, PAD, GAP, RISE = 6.6, 36.0, 10.0, 18.0, 34.0  # of the layout, in pixels
SWEEPS = 8


def label(node: Node) -> tuple[str, str]:
    """Two lines for a node: what it computes, with numbers and options spelled out, and of which type it is."""
    if node.op is INPUT:
        return node.name or str(dict(node.params)["position"]), str(node.aval)
    if node.op is CAPTURED:
        return node.name or "const", str(node.aval)
    given = ["·" if arg.op is not CONST else repr(dict(arg.params)["value"]) for arg in node.args]
    given += [f"{key}={value!r}" for key, value in node.params]
    text = f"{node.op.name}({', '.join(given)})"
    text = text if len(text) <= 48 else text[:45] + "..."
    return (f"{node.name} = {text}" if node.name else text), shown(node.aval)


def _drawn(nodes: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """All nodes but numbers, which stand in the labels of their users."""
    return [node for node in nodes if node.op is not CONST or node in outputs]


def dot(nodes: Sequence[Node], outputs: Sequence[Node]) -> str:
    """A graph in graphviz's language."""
    lines = ["digraph {", '    node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];']
    kept = _drawn(nodes, outputs)
    for node in kept:
        text = "\\n".join(part.replace("\\", "\\\\").replace('"', '\\"') for part in label(node))
        width = f", penwidth={OUTPUT_LINE}" if node in outputs else ""
        lines.append(f'    n{node.index} [label="{text}", fillcolor="{_colour(node)}"{width}];')
    inside = set(kept)
    lines += [f"    n{arg.index} -> n{node.index};" for node in kept for arg in node.args if arg in inside]
    return "\n".join([*lines, "}"])


def _colour(node: Node) -> str:
    return INPUT_COLOUR if node.op in (INPUT, CAPTURED) else COLOURS.get(node.phase, COLOURS[None])


def svg(nodes: Sequence[Node], outputs: Sequence[Node]) -> str:
    """A graph as a picture, arguments above users."""
    program = shutil.which("dot")
    if program is not None:
        done = subprocess.run([program, "-Tsvg"], input=dot(nodes, outputs), capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout[done.stdout.index("<svg") :]
    return _painted(_Layout.of(_drawn(nodes, outputs)), set(outputs))


# -- a layout of our own -------------------------------------------------------------------------------------------

Item = Any  # a node, or a point where an edge passes through a layer


@dataclass
class _Layout:
    """Sugiyama's layout: layers by depth, ordered by the mean of their neighbours' places, packed from left to right.

    An edge is a chain of items from its argument to its user, with a point in each layer in between.
    """

    layers: list[list[Item]]
    chains: list[list[Item]]
    widths: dict[Item, float]
    centre: dict[Item, float]

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> _Layout:
        """The layout of a graph: nodes, arguments before users."""
        depth = _depths(nodes)
        layers: list[list[Item]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        widths: dict[Item, float] = {node: 2 * PAD + CHAR * max(map(len, label(node))) for node in nodes}
        for node in nodes:
            layers[depth[node]].append(node)
        chains = []
        for arg, node in _edges(nodes):
            points = [(arg, node, layer) for layer in range(depth[arg] + 1, depth[node])]
            for point in points:
                layers[point[-1]].append(point)
                widths[point] = 0.0
            chains.append([arg, *points, node])
        made = cls(layers, chains, widths, {})
        made.arrange()
        return made

    def arrange(self) -> None:
        """Order the layers and place their items, by sweeps down and up."""
        above: dict[Item, list[Item]] = {item: [] for layer in self.layers for item in layer}
        below: dict[Item, list[Item]] = {item: [] for layer in self.layers for item in layer}
        for chain in self.chains:
            for first, second in itertools.pairwise(chain):
                above[second].append(first)
                below[first].append(second)
        for layer in self.layers:
            self.pack(layer, {})
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            neighbours = above if down else below
            for layer in self.layers if down else reversed(self.layers):
                wish = {i: sum(self.centre[n] for n in neighbours[i]) / len(neighbours[i]) for i in layer if neighbours[i]}
                layer.sort(key=lambda item, wish=wish: wish.get(item, self.centre[item]))  # type: ignore[misc]
                self.pack(layer, wish)
        left = min((x - self.widths[item] / 2 for item, x in self.centre.items()), default=0.0)
        self.centre = {item: x - left + PAD for item, x in self.centre.items()}

    def pack(self, layer: Sequence[Item], wish: dict[Item, float]) -> None:
        """Place items in their order, each as near to its wish as those on its left allow; the whole where it fits best."""
        edge: float | None = None
        for item in layer:
            half = self.widths[item] / 2
            nearest = wish.get(item, self.centre.get(item, 0.0))
            self.centre[item] = nearest if edge is None else max(nearest, edge + half)
            edge = self.centre[item] + half + GAP
        moved = [self.centre[item] - wish[item] for item in layer if item in wish]
        for item in layer if moved else ():
            self.centre[item] -= sum(moved) / len(moved)


def _edges(nodes: Sequence[Node]) -> list[tuple[Node, Node]]:
    inside = set(nodes)
    return [(arg, node) for node in nodes for arg in dict.fromkeys(node.args) if arg in inside]


def _depths(nodes: Sequence[Node]) -> dict[Node, int]:
    """The layer of each node: below its arguments; what has none, right above its first user."""
    edges = _edges(nodes)
    depth = dict.fromkeys(nodes, 0)
    for arg, node in edges:
        depth[node] = max(depth[node], depth[arg] + 1)
    free = set(nodes) - {node for _, node in edges}
    users = {node: [depth[user] for arg, user in edges if arg is node] for node in free}
    return depth | {node: min(found) - 1 for node, found in users.items() if found}


def _painted(layout: _Layout, outputs: set[Node]) -> str:
    """A layout as SVG."""
    width = max((x + layout.widths[item] / 2 for item, x in layout.centre.items()), default=0.0) + PAD
    height = len(layout.layers) * (HEIGHT + RISE) - RISE + 2 * PAD
    top = {item: PAD + k * (HEIGHT + RISE) for k, layer in enumerate(layout.layers) for item in layer}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, sans-serif" font-size="11">'
    ]
    for chain in layout.chains:
        x, y = layout.centre[chain[0]], top[chain[0]] + HEIGHT
        path = f"M {x:.1f} {y:.1f}"
        for item in chain[1:]:
            to, down = layout.centre[item], top[item]
            path += f" C {x:.1f} {y + RISE / 2:.1f} {to:.1f} {down - RISE / 2:.1f} {to:.1f} {down:.1f}"
            x, y = to, down + HEIGHT
            path += f" L {x:.1f} {y:.1f}" if item is not chain[-1] else ""
        y -= HEIGHT
        parts.append(f'<path d="{path}" fill="none" stroke="#888888"/>')
        parts.append(f'<path d="M {x - 3.5:.1f} {y - 6:.1f} L {x:.1f} {y:.1f} L {x + 3.5:.1f} {y - 6:.1f} Z" fill="#888888"/>')
    for node in (item for layer in layout.layers for item in layer if isinstance(item, Node)):
        x, y, wide = layout.centre[node], top[node], layout.widths[node]
        parts.append(
            f'<rect x="{x - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{HEIGHT:.0f}" rx="5" '
            f'fill="{_colour(node)}" stroke="#555555" stroke-width="{OUTPUT_LINE if node in outputs else 1}"/>'
        )
        for text, down, colour in zip(label(node), (15, 29), ("#000000", "#666666"), strict=True):
            parts.append(
                f'<text x="{x:.1f}" y="{y + down:.1f}" text-anchor="middle" fill="{colour}">{html.escape(text)}</text>'
            )
    return "\n".join([*parts, "</svg>"])
