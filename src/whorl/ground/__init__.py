"""What studies and sweeps stand on: rules and reader of designs, store, streams, engines."""
