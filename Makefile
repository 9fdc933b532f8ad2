.PHONY: run test test-deep fuzz lint audit bench search-bench
run test test-deep fuzz lint audit bench search-bench:
	@scripts/$@
