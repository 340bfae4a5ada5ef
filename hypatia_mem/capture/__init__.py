"""The hot path: what runs inside somebody else's prompt.

Standard library only, and of it as little as the branch needs; imports nothing of the rest of the
package. Capture first, print second, exit 0 on every path. The worker and the command line read
with the same modules what the hook wrote, so a format has one home.
"""
