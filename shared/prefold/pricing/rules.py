"""What calls cost and how much of it a tenant may spend, as a process's settings say."""

from typing import Self

from pydantic import model_validator

from prefold.config.settings import SummarizerSettings, check_summarizer
from prefold.errors import ConfigurationError
from prefold.pricing.budgets import Budgets, load_budgets
from prefold.pricing.table import PriceTable, load_prices

__all__ = ["AskingSettings", "prices_and_budgets"]


class AskingSettings(SummarizerSettings):
    """Of a process that asks models, or starts those that do: refused while its engine could not work."""

    @model_validator(mode="after")
    def _has_what_its_engine_needs(self) -> Self:
        if self.summarizer == "anthropic":
            try:
                prices_and_budgets(self)
            except ConfigurationError as error:
                raise ValueError(error.detail) from error
        return self


def check_files(settings: SummarizerSettings) -> None:
    """``ConfigurationError``: a file of prices or budgets that is named cannot be read, whether or not a model is asked."""
    load_prices(settings.prices_file)
    load_budgets(settings.summarizer_daily_budget_usd, settings.summarizer_budgets_file)


def prices_and_budgets(settings: SummarizerSettings) -> tuple[PriceTable, Budgets]:
    """Reads the files. ``ConfigurationError`` names the variable when no model can be asked with these settings."""
    try:
        check_summarizer(settings)
    except ValueError as error:
        raise ConfigurationError(str(error), field=str(error).partition(":")[0]) from error
    prices = load_prices(settings.prices_file)
    budgets = load_budgets(settings.summarizer_daily_budget_usd, settings.summarizer_budgets_file)
    for model in filter(None, (settings.summarizer_model, settings.summarizer_fallback_model)):
        if budgets.has_any and prices.find(model) is None:
            variable = "PREFOLD_PRICES_FILE"
            raise ConfigurationError(f"{variable}: there is a budget, and no price for {model!r}", field=variable)
    return prices, budgets
