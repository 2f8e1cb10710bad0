"""The tests: folders mirror the packages, `unit` those of tracegraph, `plan` those of lowering."""
