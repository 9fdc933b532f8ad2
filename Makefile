.PHONY: run test test-deep lint bench search-bench
run test test-deep lint bench search-bench:
	@scripts/$@
