"""From shingle sets to bucket keys: min-hash, bands, crop keys, and the mathematics behind them."""
