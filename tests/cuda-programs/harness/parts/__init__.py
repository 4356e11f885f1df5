from . import causes, clock, cost, endings, frameworks, matrix, neighbours, ranks

__all__ = ["causes", "clock", "cost", "endings", "frameworks", "matrix", "neighbours", "ranks"]
