"""What model calls cost: the price table and its arithmetic."""

from prefold.pricing.comparing import Comparison, Workload, compare
from prefold.pricing.table import PACKAGED, BilledTokens, Price, PriceTable, Rates, load_prices

__all__ = [
    "PACKAGED",
    "BilledTokens",
    "Comparison",
    "Price",
    "PriceTable",
    "Rates",
    "Workload",
    "compare",
    "load_prices",
]
