from . import causes, clock, cost, endings, frameworks, neighbours, one_process, ranks, relay

__all__ = ["causes", "clock", "cost", "endings", "frameworks", "neighbours", "one_process", "ranks", "relay"]
