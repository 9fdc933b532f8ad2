.PHONY: run test lint bench search-bench
run test lint bench search-bench:
	@scripts/$@
