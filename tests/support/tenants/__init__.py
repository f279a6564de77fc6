"""Twenty tenants who use the same names for everything, and words by which each can be told from all others."""
