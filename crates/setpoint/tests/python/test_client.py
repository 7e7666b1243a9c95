"""The client of Kubernetes for Python, as people use it. One server serves all of these tests."""

import unittest

from kubernetes import client, config, dynamic, watch
from kubernetes.client import ApiException

NAMESPACE = "default"


def setUpModule():
    config.load_kube_config()


def config_map(name, data=None, labels=None):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)


class Objects(unittest.TestCase):
    def setUp(self):
        self.api = client.CoreV1Api()

    def test_an_object_is_created_read_replaced_and_deleted(self):
        made = self.api.create_namespaced_config_map(NAMESPACE, config_map("crud", {"a": "1"}))
        self.assertTrue(made.metadata.uid)
        read = self.api.read_namespaced_config_map("crud", NAMESPACE)
        self.assertEqual(read.data, {"a": "1"})
        read.data["a"] = "2"
        replaced = self.api.replace_namespaced_config_map("crud", NAMESPACE, read)
        self.assertGreater(int(replaced.metadata.resource_version), int(made.metadata.resource_version))
        self.assertEqual(self.api.delete_namespaced_config_map("crud", NAMESPACE).status, "Success")
        with self.assertRaises(ApiException) as raised:
            self.api.read_namespaced_config_map("crud", NAMESPACE)
        self.assertEqual(raised.exception.status, 404)

    def test_a_typed_object_comes_back_with_its_defaults(self):
        labels = {"app": "typed"}
        container = client.V1Container(name="web", image="nginx:1.27", resources=client.V1ResourceRequirements(requests={"cpu": "0.5"}))
        template = client.V1PodTemplateSpec(
            metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
        )
        spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels=labels), template=template)
        deployment = client.V1Deployment(metadata=client.V1ObjectMeta(name="typed"), spec=spec)
        made = client.AppsV1Api().create_namespaced_deployment(NAMESPACE, deployment)
        self.assertEqual(made.spec.replicas, 1)
        self.assertEqual(made.spec.strategy.rolling_update.max_surge, "25%")
        self.assertEqual(made.spec.template.spec.containers[0].resources.requests, {"cpu": "500m"})
        self.assertEqual(made.metadata.generation, 1)
        scale = client.AppsV1Api().patch_namespaced_deployment_scale("typed", NAMESPACE, {"spec": {"replicas": 4}})
        self.assertEqual((scale.spec.replicas, scale.status.selector), (4, "app=typed"))

    def test_a_list_comes_in_pages_of_one_moment(self):
        for number in range(7):
            self.api.create_namespaced_config_map(NAMESPACE, config_map(f"page-{number}", labels={"set": "pages"}))
        names, token, remaining = [], None, []
        while True:
            page = self.api.list_namespaced_config_map(NAMESPACE, label_selector="set=pages", limit=3, _continue=token)
            names += [item.metadata.name for item in page.items]
            remaining.append(page.metadata.resource_version)
            token = page.metadata._continue
            if len(names) == 3:
                self.api.delete_namespaced_config_map("page-6", NAMESPACE)
            if not token:
                break
        self.assertEqual(names, [f"page-{number}" for number in range(7)])
        self.assertEqual(len(set(remaining)), 1)

    def test_a_collection_is_deleted_by_its_labels(self):
        for number in range(3):
            self.api.create_namespaced_config_map(NAMESPACE, config_map(f"many-{number}", labels={"set": "many"}))
        self.api.delete_collection_namespaced_config_map(NAMESPACE, label_selector="set=many")
        self.assertEqual(self.api.list_namespaced_config_map(NAMESPACE, label_selector="set=many").items, [])


class Watches(unittest.TestCase):
    def setUp(self):
        self.api = client.CoreV1Api()

    def events(self, count, **arguments):
        stream = watch.Watch().stream(
            self.api.list_namespaced_config_map, NAMESPACE, label_selector="set=watched", timeout_seconds=20, **arguments
        )
        events = []
        for event in stream:
            events.append(event)
            if len(events) == count:
                return events
        self.fail(f"only {len(events)} events came")

    def test_a_watch_goes_on_from_where_another_ended(self):
        start = self.api.list_namespaced_config_map(NAMESPACE, label_selector="set=watched").metadata.resource_version
        self.api.create_namespaced_config_map(NAMESPACE, config_map("watched", {"a": "1"}, {"set": "watched"}))
        self.api.patch_namespaced_config_map("watched", NAMESPACE, {"data": {"a": "2"}})
        first = self.events(1, resource_version=start)[0]
        self.assertEqual((first["type"], first["object"].data), ("ADDED", {"a": "1"}))
        second = self.events(1, resource_version=first["object"].metadata.resource_version)[0]
        self.assertEqual((second["type"], second["object"].data), ("MODIFIED", {"a": "2"}))
        self.api.delete_namespaced_config_map("watched", NAMESPACE)
        both = self.events(3, resource_version=start)
        self.assertEqual([event["type"] for event in both], ["ADDED", "MODIFIED", "DELETED"])
        versions = [int(event["object"].metadata.resource_version) for event in both]
        self.assertEqual(versions, sorted(set(versions)))


class Patches(unittest.TestCase):
    def setUp(self):
        self.api = client.AppsV1Api()

    def deployment(self, name):
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
                },
            },
        }

    def patched(self, name, patch, media_type):
        # What the library sends is decided by its header, so it is said here.
        client_of_its_own = client.ApiClient()
        client_of_its_own.set_default_header("Content-Type", media_type)
        api = client.AppsV1Api(client_of_its_own)
        return api.patch_namespaced_deployment(name, NAMESPACE, patch, _content_type=media_type)

    def test_each_kind_of_patch_changes_what_it_says(self):
        self.api.create_namespaced_deployment(NAMESPACE, self.deployment("patched"))
        log = {"spec": {"template": {"spec": {"containers": [{"name": "log", "image": "busybox"}]}}}}
        both = self.patched("patched", log, "application/strategic-merge-patch+json")
        self.assertEqual([c.name for c in both.spec.template.spec.containers], ["log", "web"])
        one = self.patched("patched", log, "application/merge-patch+json")
        self.assertEqual([c.name for c in one.spec.template.spec.containers], ["log"])
        operations = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
        self.assertEqual(self.patched("patched", operations, "application/json-patch+json").spec.replicas, 5)

    def test_two_managers_apply_to_one_object(self):
        dynamic_client = dynamic.DynamicClient(client.ApiClient())
        deployments = dynamic_client.resources.get(api_version="apps/v1", kind="Deployment")
        apply = lambda body, manager, **more: deployments.server_side_apply(
            body=body, namespace=NAMESPACE, field_manager=manager, **more
        )
        body = self.deployment("applied")
        body["spec"]["replicas"] = 2
        self.assertEqual(apply(body, "one").spec.replicas, 2)
        other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "applied"}, "spec": {"replicas": 3}}
        with self.assertRaises(dynamic.exceptions.ConflictError) as raised:
            apply(other, "two")
        self.assertIn('conflict with \\"one\\": .spec.replicas', str(raised.exception.body))
        self.assertEqual(apply(other, "two", force_conflicts=True).spec.replicas, 3)
        entries = deployments.get(name="applied", namespace=NAMESPACE).metadata.managedFields
        # The loop that keeps deployments owns what it writes, and applies nothing.
        appliers = [entry.manager for entry in entries if entry.operation == "Apply"]
        self.assertEqual(sorted(appliers), ["one", "two"])


class Errors(unittest.TestCase):
    def setUp(self):
        self.api = client.CoreV1Api()

    def refused(self, call, *arguments, **more):
        with self.assertRaises(ApiException) as raised:
            call(*arguments, **more)
        return raised.exception.status, client.ApiClient().deserialize(FakeResponse(raised.exception.body), "V1Status")

    def test_errors_say_what_is_wrong(self):
        self.api.create_namespaced_config_map(NAMESPACE, config_map("errors"))
        code, status = self.refused(self.api.create_namespaced_config_map, NAMESPACE, config_map("errors"))
        self.assertEqual((code, status.reason, status.details.name), (409, "AlreadyExists", "errors"))
        code, status = self.refused(self.api.create_namespaced_config_map, NAMESPACE, config_map("NOT A NAME"))
        self.assertEqual((code, status.reason, status.details.causes[0].field), (422, "Invalid", "metadata.name"))
        stale = config_map("errors")
        stale.metadata.resource_version = "1"
        code, status = self.refused(self.api.replace_namespaced_config_map, "errors", NAMESPACE, stale)
        self.assertEqual((code, status.reason), (409, "Conflict"))
        code, status = self.refused(self.api.list_namespaced_config_map, NAMESPACE, _continue="nonsense")
        self.assertEqual((code, status.reason), (400, "BadRequest"))

    def test_one_who_may_not_is_told_so(self):
        somebody = client.ApiClient()
        somebody.set_default_header("Impersonate-User", "somebody")
        code, status = self.refused(client.CoreV1Api(somebody).list_node)
        self.assertEqual((code, status.reason), (403, "Forbidden"))
        self.assertIn('User "somebody" cannot list resource "nodes"', status.message)
        review = client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(
                resource_attributes=client.V1ResourceAttributes(verb="list", resource="nodes")
            )
        )
        self.assertFalse(client.AuthorizationV1Api(somebody).create_self_subject_access_review(review).status.allowed)


class FakeResponse:
    """What the library deserializes from."""

    def __init__(self, data):
        self.data = data if isinstance(data, str) else data.decode()

    def getheader(self, _name, default=None):
        return "application/json"

    def getheaders(self):
        return {"content-type": "application/json"}


if __name__ == "__main__":
    unittest.main()
