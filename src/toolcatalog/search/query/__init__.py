"""From a query to ranked tools: expansion, matching, ranking, and explanation of scores."""
