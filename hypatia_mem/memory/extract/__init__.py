"""From finished work to lessons: topics, their kinds, work units, and rules that come again."""
