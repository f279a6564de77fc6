"""What model calls cost: the price table, its arithmetic, and what may be spent."""

from prefold.pricing.budgets import Budgets, load_budgets
from prefold.pricing.comparing import Comparison, Workload, compare
from prefold.pricing.rules import AskingSettings, check_files, prices_and_budgets
from prefold.pricing.table import PACKAGED, BilledTokens, Price, PriceTable, Rates, load_prices

__all__ = [
    "PACKAGED",
    "AskingSettings",
    "BilledTokens",
    "Budgets",
    "Comparison",
    "Price",
    "PriceTable",
    "Rates",
    "Workload",
    "check_files",
    "compare",
    "load_budgets",
    "load_prices",
    "prices_and_budgets",
]
