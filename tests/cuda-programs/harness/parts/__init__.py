from . import causes, clock, cost, endings, frameworks, neighbours, ranks

__all__ = ["causes", "clock", "cost", "endings", "frameworks", "neighbours", "ranks"]
