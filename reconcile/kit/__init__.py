"""What an author of a counter uses: conformance tests, the shortest program that shows an error, drafts of rules."""
