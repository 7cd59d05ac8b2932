"""Contract 8.3, line 1, and N.97: pydantic-ai's own rules for a workspace, through SandboxdWorkspace."""

import pytest
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite
from pydantic_ai_backends.workspaces import SandboxdWorkspace


@pytest.fixture(scope="module")
def without_native_files(services, root):
    return services(workspace_root=root, native_files=0, execute_timeout=60)


class Rules(WorkspaceBackendSuite):
    """What each way below provides; `capability` is the way's own."""

    @pytest.fixture(scope="class")
    def anyio_backend(self):
        return "asyncio"

    @pytest.fixture(scope="class")
    def backend(self, capability):
        return capability.backend()

    @pytest.fixture
    def fresh_backend(self, capability):
        return capability.backend

    @pytest.fixture
    def attach_backend(self, capability):
        return capability.backend

    @pytest.fixture
    def destroy_environment(self, capability):
        async def destroy(backend):
            await capability.destroy(backend.ref)

        return destroy


class TestByTheShell(Rules):
    @pytest.fixture(scope="class")
    def capability(self, without_native_files):
        service = without_native_files
        return SandboxdWorkspace(service_url=f"http://127.0.0.1:{service.port}", token=service.token)


class TestAsTheServiceOffers(Rules):
    @pytest.fixture(scope="class")
    def capability(self, services, root):
        service = services(workspace_root=root, execute_timeout=60)
        return SandboxdWorkspace(service_url=f"http://127.0.0.1:{service.port}", token=service.token)


def test_n_097_the_suite_is_as_large_as_it_was():
    rules = [name for name in dir(WorkspaceBackendSuite) if name.startswith("test_")]
    assert len(rules) == 40, "pydantic-ai has other rules now: look at them, then change this number"
