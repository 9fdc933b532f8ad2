.PHONY: run test test-deep lint audit bench search-bench
run test test-deep lint audit bench search-bench:
	@scripts/$@
