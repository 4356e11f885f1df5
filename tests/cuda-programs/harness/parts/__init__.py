from . import (
    causes,
    clock,
    cost,
    endings,
    frameworks,
    neighbours,
    one_process,
    pressure,
    ranks,
    relay,
    sources,
    vulkan_work,
)

__all__ = [
    "causes",
    "clock",
    "cost",
    "endings",
    "frameworks",
    "neighbours",
    "one_process",
    "pressure",
    "ranks",
    "relay",
    "sources",
    "vulkan_work",
]
