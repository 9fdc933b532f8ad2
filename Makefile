.PHONY: run test test-deep fuzz mutants coverage lint audit bench search-bench
run test test-deep fuzz mutants coverage lint audit bench search-bench:
	@scripts/$@
