.PHONY: run test test-unit test-deep fuzz mutants coverage lint docs audit bench search-bench
run test test-unit test-deep fuzz mutants coverage lint docs audit bench search-bench:
	@scripts/$@
