"""Comments on a pull request, as GitHub's API has them, and Forgejo's after it."""

from __future__ import annotations

from perfci.publish.github.answers import CommentAnswer
from perfci.publish.github.comment import Comment
from perfci.publish.rest import Rest


class IssueComments(Rest):
    """Writes them. Every method is one request."""

    def create_comment(self, number: int, body: str) -> str:
        """Comment, and return the comment's address."""
        path = f"/issues/{number}/comments"
        return self._write("POST", path, CommentAnswer, {"body": body}).html_url

    def update_comment(self, comment: Comment, body: str) -> str:
        """Replace a comment's text, and return its address. Unsure where somebody deleted it."""
        path = f"/issues/comments/{comment.id}"
        return self._write("PATCH", path, CommentAnswer, {"body": body}).html_url

    def delete_comment(self, comment: Comment) -> None:
        """Delete a comment; one that is gone already is as it should be."""
        self._delete(f"/issues/comments/{comment.id}")
