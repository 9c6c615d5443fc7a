import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { z } from "zod";
import { buildKustomization } from "../../../../scripts/build-kustomization.ts";

const build = (dir: string) =>
  buildKustomization(fileURLToPath(new URL(`../../../../ops/kubernetes/${dir}`, import.meta.url)));

const Labels = z.record(z.string(), z.string());
const Expression = z.strictObject({ key: z.string(), operator: z.literal("In"), values: z.array(z.string()) });
const Selector = z.strictObject({ matchLabels: Labels.default({}), matchExpressions: z.array(Expression).default([]) });
const Peer = z.union([
  z.strictObject({ podSelector: Selector }),
  z.strictObject({ namespaceSelector: z.strictObject({ matchLabels: Labels }) }),
  z.strictObject({ ipBlock: z.strictObject({ cidr: z.string(), except: z.array(z.string()).default([]) }) }),
]);
const ports = z.array(z.strictObject({ port: z.union([z.string(), z.number()]), protocol: z.string().default("TCP") }));
// Rules without peers or ports allow everything: these schemas refuse them.
const Policy = z.strictObject({
  podSelector: Selector,
  policyTypes: z.array(z.enum(["Ingress", "Egress"])),
  ingress: z.array(z.strictObject({ from: z.array(Peer), ports })).default([]),
  egress: z.array(z.strictObject({ to: z.array(Peer), ports })).default([]),
});
const Workload = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    template: z.object({
      metadata: z.object({ labels: Labels }),
      spec: z.object({
        containers: z.tuple([
          z.object({ ports: z.array(z.object({ name: z.string(), containerPort: z.number() })).default([]) }),
        ]),
      }),
    }),
  }),
});
type Pod = { name: string; labels: z.infer<typeof Labels>; ports: { name: string; containerPort: number }[] };
type Rule = { peers: z.infer<typeof Peer>[]; ports: z.infer<typeof ports> };

const isSelected = ({ matchLabels, matchExpressions }: z.infer<typeof Selector>, { labels }: Pod) =>
  Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
  matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? ""));

/** Returns a short name of a peer outside of the namespace. */
function describePeer(peer: z.infer<typeof Peer>): string[] {
  if ("namespaceSelector" in peer) return Object.values(peer.namespaceSelector.matchLabels);
  if (!("ipBlock" in peer)) return [];
  const { cidr, except } = peer.ipBlock;
  return [cidr === "0.0.0.0/0" ? `internet without ${except.join(" ")}` : cidr];
}

/** Returns who each pod accepts connections from and connects to, as the policies allow it: "peer:port". */
function listConnections(manifests: ReturnType<typeof build>) {
  const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy").map((one) => Policy.parse(one["spec"]));
  const pods = manifests
    .filter(({ kind }) => ["Deployment", "StatefulSet", "Job"].includes(kind))
    .map((one) => Workload.parse(one))
    .map(({ metadata: { name }, spec: { template } }): Pod => {
      return { name, labels: template.metadata.labels, ports: template.spec.containers[0].ports };
    });
  const rulesOf = (pod: Pod, type: "Ingress" | "Egress"): Rule[] => {
    const applying = policies.filter((one) => one.policyTypes.includes(type) && isSelected(one.podSelector, pod));
    // A pod that no policy selects is open to everyone.
    expect([pod.name, applying.length > 0]).toEqual([pod.name, true]);
    return applying.flatMap((one): Rule[] =>
      type === "Ingress"
        ? one.ingress.map(({ from, ports }) => ({ peers: from, ports }))
        : one.egress.map(({ to, ports }) => ({ peers: to, ports })),
    );
  };
  const toNumbers = (target: Pod, rule: Rule) =>
    rule.ports.map(({ port }) => target.ports.find(({ name }) => name === port)?.containerPort ?? port);
  const names = (rule: Rule, pod: Pod) =>
    rule.peers.some((peer) => "podSelector" in peer && isSelected(peer.podSelector, pod));
  const outside = (rules: Rule[], numbersOf: (rule: Rule) => (string | number)[]) =>
    rules.flatMap((rule) =>
      rule.peers.flatMap(describePeer).flatMap((peer) => numbersOf(rule).map((port) => `${peer}:${port}`)),
    );
  /** Both sides have to allow a connection between two pods. */
  const between = (source: Pod, target: Pod) => {
    const sent = rulesOf(source, "Egress")
      .filter((rule) => names(rule, target))
      .flatMap((rule) => toNumbers(target, rule));
    const accepted = rulesOf(target, "Ingress")
      .filter((rule) => names(rule, source))
      .flatMap((rule) => toNumbers(target, rule));
    return sent.filter((port) => accepted.includes(port));
  };
  return Object.fromEntries(
    pods.map((pod) => {
      const from = outside(rulesOf(pod, "Ingress"), (rule) => toNumbers(pod, rule));
      const to = outside(rulesOf(pod, "Egress"), (rule) => rule.ports.map(({ port }) => port));
      const pairs = (source: Pod, target: Pod, other: Pod) =>
        between(source, target).map((port) => `${other.name}:${port}`);
      return [
        pod.name,
        {
          from: [...from, ...pods.flatMap((other) => pairs(other, pod, other))].toSorted(),
          to: [...new Set([...to, ...pods.flatMap((other) => pairs(pod, other, other))])].toSorted(),
        },
      ];
    }),
  );
}

const names = "kube-system:53";
const privately = (port: number) =>
  ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"].map((range) => `${range}:${port}`);
const stores = [...privately(5432), ...privately(6379)];
const internet =
  "internet without 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16:443";
const metrics = "monitoring:9464";
const traces = "monitoring:4318";
const jobs = {
  migrate: { from: [], to: [names, ...privately(5432)] },
  "signer-init": { from: [], to: [names] },
  admin: { from: [], to: [names, ...privately(5432), internet, "signer:8443"] },
};
const common = {
  ...jobs,
  api: { from: ["ingress:8080", metrics], to: [names, ...stores, internet, traces] },
  "bull-board": { from: [metrics, "operators:8081"], to: [names, ...stores] },
};
const worker = { from: [metrics], to: [names, ...stores, internet, traces] };
const signerClient = { ...worker, to: [...worker.to, "signer:8443"] };
const signer = (clients: string[]) => ({
  from: [metrics, ...clients.map((one) => `${one}:8443`)],
  to: [names, internet],
});

test.each([
  ["small", { ...common, worker: signerClient, signer: signer(["admin", "worker"]) }],
  [
    "production",
    {
      ...common,
      "worker-verify": worker,
      "worker-background": worker,
      "worker-chains": signerClient,
      signer: signer(["admin", "worker-chains"]),
    },
  ],
])("pods of %s have the connections of this table and no other", (overlay, expected) => {
  const manifests = [...build(`overlays/${overlay}`), ...["migrate", "signer-init", "admin"].flatMap(build)];
  const sorted = Object.entries(expected).map(([name, { from, to }]) => [
    name,
    { from: from.toSorted(), to: to.toSorted() },
  ]);
  expect(listConnections(manifests)).toEqual(Object.fromEntries(sorted));
});
