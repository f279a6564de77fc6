"""What a tenant may use: counted for all processes, spent without asking for every request."""

from prefold.quotas.builds import BuildQuotas
from prefold.quotas.errors import QuotaError
from prefold.quotas.leases import Quotas, TenantLease

__all__ = ["BuildQuotas", "QuotaError", "Quotas", "TenantLease"]
