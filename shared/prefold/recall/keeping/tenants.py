"""Whose turns are all embedded, small talk too."""


def keeps_all(tenant: str, keep_all_tenants: str) -> bool:
    """True if the setting names this tenant: names by commas, ``*`` for every one, ``none`` for none."""
    named = {name.strip() for name in keep_all_tenants.split(",")}
    return "*" in named or (tenant in named and tenant != "none")
