"""The ledger: exact values, constraints and corrections, collected without a model."""
