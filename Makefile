.PHONY: run test lint
run test lint:
	@scripts/$@
