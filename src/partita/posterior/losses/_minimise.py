"""The clustering of least expected loss, component by component."""

import numpy as np

from partita._core.kernel import kernel
from partita._core.typing import Floats, Integers

from ._clusters import Census, Layout, WeightedClusters, grouped
from ._exact import Components, minimise_exactly
from ._expected import cluster_losses
from ._search import Search, local_minimum, new_search
from ._terms import Loss, Terms, rounding, tabulate

#: Components of at most this many blocks are minimised exactly, at a cost of O(3^blocks).
EXACT_BLOCKS = 12
#: Local search starts from this many particles, those of least expected loss.
PARTICLE_STARTS = 4


def minimise(loss: Loss, layout: Layout, census: Census) -> Integers:
    """For every block the smallest block of its cluster, in the clustering of least expected loss."""
    clusters = census.clusters
    component = connect(clusters)
    order, start = grouped(np.arange(len(component)), component, len(component))
    width = np.diff(start)
    undecided = (width > 1) & (np.diff(clusters.block_start) > 1)  # not one cluster in every particle
    terms = tabulate(loss, int(layout.block_size.sum()))
    estimate = component.copy()

    place = np.arange(len(order)) - np.repeat(start[:-1], width)
    position = np.empty_like(place)
    position[order] = place
    roots = np.flatnonzero(undecided & (width <= EXACT_BLOCKS))
    minimise_exactly(terms, clusters, Components(order, start, position), roots, census.best, estimate)

    roots = np.flatnonzero(undecided & (width > EXACT_BLOCKS))
    if len(roots):
        search = new_search(clusters)
        for root in roots:
            blocks = order[start[root] : start[root + 1]]
            tolerance = rounding(loss, int(layout.block_size[blocks].sum()))
            rows = particles_of(layout, census, blocks)
            estimate[blocks] = search_from_particles(terms, clusters, search, blocks, rows, tolerance)
    return estimate


def connect(clusters: WeightedClusters) -> Integers:
    """For every block the smallest block it is connected to through shared clusters."""
    parent = np.arange(len(clusters.block_size))
    unite(clusters.start, clusters.blocks, parent)
    return parent


@kernel
def unite(start: Integers, blocks: Integers, parent: Integers) -> None:
    """Union-find over the blocks of each cluster; the smaller root stays one."""
    for c in range(start.shape[0] - 1):
        for at in range(start[c], start[c + 1]):
            one, other = blocks[start[c]], blocks[at]
            while parent[one] != one:
                parent[one] = parent[parent[one]]
                one = parent[one]
            while parent[other] != other:
                parent[other] = parent[parent[other]]
                other = parent[other]
            if one < other:
                parent[other] = one
            else:
                parent[one] = other
    for b in range(parent.shape[0]):
        parent[b] = parent[parent[b]]


def particles_of(layout: Layout, census: Census, blocks: Integers) -> Integers:
    """(P, B) clusters of some blocks of one subproblem, in each of its particles."""
    s = int(np.searchsorted(layout.blocks_start, blocks[0], side="right")) - 1
    cells = census.cells[layout.cells_start[s] : layout.cells_start[s + 1]]
    first, end = layout.blocks_start[s : s + 2]
    return cells.reshape(-1, end - first)[:, blocks - first]


def search_from_particles(
    terms: Terms,
    clusters: WeightedClusters,
    search: Search,
    blocks: Integers,
    rows: Integers,
    tolerance: float,
) -> Integers:
    """The best local minimum from the particles of least loss, all blocks together, and all apart."""
    particles = clusters.blocks[clusters.start[rows]]  # each block by the smallest of its cluster
    particle_loss = losses_of_particles(terms, clusters, blocks, rows, particles)
    nearest = np.argsort(particle_loss, kind="stable")
    best, least = particles[nearest[0]], particle_loss[nearest[0]]
    starts = [*particles[nearest[:PARTICLE_STARTS]], np.full_like(blocks, blocks[0]), blocks]
    for start in starts:
        found = smallest_names(blocks, local_minimum(terms, clusters, search, blocks, start, tolerance))
        total = partition_loss(terms, clusters, blocks, found)
        if total < least:
            best, least = found, total
    return best


def losses_of_particles(
    terms: Terms, clusters: WeightedClusters, blocks: Integers, rows: Integers, particles: Integers
) -> Floats:
    """Σ f over the clusters of each particle; f is computed once for clusters that several share."""
    known, number = np.unique(rows, return_inverse=True)
    widths = clusters.start[known + 1] - clusters.start[known]
    start = np.concatenate(([0], np.cumsum(widths)))
    members = clusters.blocks[np.repeat(clusters.start[known] - start[:-1], widths) + np.arange(start[-1])]
    f = cluster_losses(terms, clusters, start, members, clusters.block_size[members])
    result: Floats = np.where(particles == blocks, f[number.reshape(rows.shape)], 0.0).sum(axis=1)
    return result


def partition_loss(terms: Terms, clusters: WeightedClusters, blocks: Integers, assignment: Integers) -> float:
    """Σ f(ĉ) over the clusters of an assignment of the blocks."""
    order = np.argsort(assignment, kind="stable")
    ends = np.flatnonzero(np.diff(assignment[order])) + 1
    start, members = np.concatenate(([0], ends, [len(order)])), blocks[order]
    return float(cluster_losses(terms, clusters, start, members, clusters.block_size[members]).sum())


def smallest_names(blocks: Integers, assignment: Integers) -> Integers:
    """The same assignment of ascending blocks, each cluster named by its smallest block."""
    _, first, number = np.unique(assignment, return_index=True, return_inverse=True)
    return blocks[first[number]]
