"""Sorting and selection inside kernels."""

from __future__ import annotations

import numpy as np

from partita._core.kernel import inner


@inner
def descending(values, n):
    """The order that sorts the first ``n`` values from high to low, equal ones as they stand: merge sort."""
    order, other = np.empty(n, np.int64), np.empty(n, np.int64)
    for k in range(n):
        order[k] = k
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            a, b = start, middle
            for k in range(start, end):
                if b >= end or (a < middle and values[order[a]] >= values[order[b]]):
                    other[k] = order[a]
                    a += 1
                else:
                    other[k] = order[b]
                    b += 1
        order, other = other, order
        width *= 2
    return order


@inner
def kth_largest(values, n, k):
    """The k-th largest of the first ``n`` values, 1 ≤ k ≤ n: quickselect on a copy."""
    copy = np.empty(n)
    for i in range(n):
        copy[i] = values[i]
    low, high = 0, n - 1
    while low < high:
        pivot = copy[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while copy[i] > pivot:
                i += 1
            while copy[j] < pivot:
                j -= 1
            if i <= j:
                copy[i], copy[j] = copy[j], copy[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return copy[k - 1]


@inner
def sift_down(heap, keys, count):
    """Restore the order of a heap of indices, smallest key at the top, from the top downwards."""
    start, entry = 0, heap[0]
    while 2 * start + 1 < count:
        below = 2 * start + 1
        if below + 1 < count and keys[heap[below + 1]] < keys[heap[below]]:
            below += 1
        if keys[entry] <= keys[heap[below]]:
            break
        heap[start] = heap[below]
        start = below
    heap[start] = entry


@inner
def push(heap, keys, count, entry):
    """Add an index to a heap of ``count``."""
    while count > 0 and keys[entry] < keys[heap[(count - 1) // 2]]:
        heap[count] = heap[(count - 1) // 2]
        count = (count - 1) // 2
    heap[count] = entry


@inner
def sink(value, cluster, n):
    """Restore the order of a heap of the n best, the least first, after its first entry has been replaced."""
    k = 0
    while 2 * k + 1 < n:
        least = 2 * k + 1
        if least + 1 < n and value[least + 1] < value[least]:
            least += 1
        if value[k] <= value[least]:
            break
        value[k], value[least] = value[least], value[k]
        cluster[k], cluster[least] = cluster[least], cluster[k]
        k = least


@inner
def sort_range(values, first, last):
    """Sort a range in ascending order (Shell 1959): most are short, and a few have a thousand entries."""
    gap = 364
    while gap > 0:
        for i in range(first + gap, last):
            value, j = values[i], np.int64(i)
            while j - gap >= first and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@inner
def distinct_range(values, first, last):
    """Move the different values of a sorted range to its beginning; returns where they end."""
    at = first
    for k in range(first, last):
        if k == first or values[k] != values[at - 1]:
            values[at] = values[k]
            at += 1
    return at
