"""Typed, validated entries: chips, links, clusters, constants and models, from YAML and config.json."""
