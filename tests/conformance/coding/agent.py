"""One coding task by the console tools of a client release, in that release's own Python, with a script in the model's place.

    agent.py GENERATION URL TOKEN SESSION      prints JSON: [step, what the tool told the model] of each step"""

import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits
from pydantic_ai_backends.toolsets.console import create_console_toolset

from steps import STEPS


def agent_for(generation, url, token, session, model):
    settings = {"require_execute_approval": False, "max_retries": 3}
    if generation == "g1":
        from pydantic_ai_backends.remote import RemoteSandbox

        backend = RemoteSandbox(url, token=token, session_id=session)
        return Agent(model, toolsets=[create_console_toolset(backend=backend, **settings)])
    from pydantic_ai_backends.workspaces import SandboxdWorkspace

    workspace = SandboxdWorkspace(service_url=url, token=token, session_name=session)
    return Agent(model, capabilities=[workspace], toolsets=[create_console_toolset(**settings)])


class Script:
    """Calls the steps' tools one after the other and keeps what each was answered."""

    def __init__(self):
        self.told = []

    def __call__(self, messages, info):
        if self.told or len(messages) > 1:
            (answer,) = messages[-1].parts
            assert isinstance(answer, (ToolReturnPart, RetryPromptPart)), answer
            kind = "retry: " if isinstance(answer, RetryPromptPart) else ""
            self.told.append([STEPS[len(self.told)][0], kind + str(answer.content)])
        if len(self.told) == len(STEPS):
            return ModelResponse(parts=[TextPart("done")])
        _, tool, arguments = STEPS[len(self.told)]
        return ModelResponse(parts=[ToolCallPart(tool, arguments)])


def main(generation, url, token, session):
    script = Script()
    agent = agent_for(generation, url, token, session, FunctionModel(script))
    asyncio.run(agent.run("Write the package.", usage_limits=UsageLimits(request_limit=None)))
    print(json.dumps(script.told))


main(*sys.argv[1:])
