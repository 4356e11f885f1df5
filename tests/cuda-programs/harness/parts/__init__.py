from . import causes, clock, cost, endings, frameworks, neighbours, ranks, relay

__all__ = ["causes", "clock", "cost", "endings", "frameworks", "neighbours", "ranks", "relay"]
