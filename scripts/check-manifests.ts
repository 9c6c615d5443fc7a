import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { StatefulSet } from "kubernetes-models/apps/v1/StatefulSet";
import { Job } from "kubernetes-models/batch/v1/Job";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { ConfigMap } from "kubernetes-models/v1/ConfigMap";
import { Namespace } from "kubernetes-models/v1/Namespace";
import { PersistentVolumeClaim } from "kubernetes-models/v1/PersistentVolumeClaim";
import { Service } from "kubernetes-models/v1/Service";
import { buildKustomization, type Manifest } from "./build-kustomization.ts";

// Validates every object of ops/kubernetes twice: its values against the schemas of Kubernetes and KEDA, and its members
// against their types, because the schemas allow members that do not exist.

/** The model of each kind, and the module of its type. */
const models = {
  ConfigMap: { model: ConfigMap, module: "kubernetes-models/v1/ConfigMap" },
  Deployment: { model: Deployment, module: "kubernetes-models/apps/v1/Deployment" },
  Job: { model: Job, module: "kubernetes-models/batch/v1/Job" },
  Namespace: { model: Namespace, module: "kubernetes-models/v1/Namespace" },
  NetworkPolicy: { model: NetworkPolicy, module: "kubernetes-models/networking.k8s.io/v1/NetworkPolicy" },
  PersistentVolumeClaim: { model: PersistentVolumeClaim, module: "kubernetes-models/v1/PersistentVolumeClaim" },
  PodDisruptionBudget: { model: PodDisruptionBudget, module: "kubernetes-models/policy/v1/PodDisruptionBudget" },
  ScaledObject: { model: ScaledObject, module: "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject" },
  Service: { model: Service, module: "kubernetes-models/v1/Service" },
  StatefulSet: { model: StatefulSet, module: "kubernetes-models/apps/v1/StatefulSet" },
} as const;

const root = fileURLToPath(new URL("../", import.meta.url));
const directories = ["overlays/small", "overlays/production", "migrate", "signer-init", "admin", "data-keys"];
const all = directories.flatMap((dir) =>
  buildKustomization(`${root}ops/kubernetes/${dir}`).map((manifest) => ({ dir, manifest })),
);

const errors = all.flatMap(({ dir, manifest }) => {
  const { kind, metadata } = manifest;
  const place = `ops/kubernetes/${dir}: ${kind} ${metadata.name}`;
  if (!isKnown(kind)) return [`${place}: scripts/check-manifests.ts has no schema for this kind`];
  const { model } = models[kind];
  if (model.apiVersion !== manifest.apiVersion) return [`${place}: apiVersion is not ${model.apiVersion}`];
  try {
    new model(manifest as never).validate();
    return [];
  } catch (error) {
    return [`${place}: ${error instanceof Error ? error.message : String(error)}`];
  }
});
for (const error of [...errors, ...(errors.length === 0 ? findUnknownMembers() : [])]) {
  console.error(error);
  process.exitCode = 1;
}
if (process.exitCode === undefined) console.log(`manifests: ${all.length} objects are valid`);

function isKnown(kind: string): kind is keyof typeof models {
  return Object.hasOwn(models, kind);
}

/** Writes the objects as typed literals and compiles them: TypeScript refuses members that a type does not have. */
function findUnknownMembers(): string[] {
  const kinds = Object.entries(models).map(([kind, { module }]) => `import type { I${kind} } from "${module}";`);
  const constants = all.map(({ manifest }: { manifest: Manifest }, index) => {
    const name = `${manifest.kind}_${manifest.metadata.name.replaceAll("-", "_")}_${index}`;
    return `export const ${name}: I${manifest.kind} = ${JSON.stringify(manifest, null, 2)};`;
  });
  mkdirSync(`${root}.local`, { recursive: true });
  const file = `${root}.local/manifests.ts`;
  writeFileSync(file, [...kinds, ...constants].join("\n"));
  const options = [
    "--ignoreConfig",
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--module",
    "nodenext",
    "--types",
    "node",
  ];
  try {
    execFileSync("tsc", [...options, file], { cwd: root, encoding: "utf8", stdio: "pipe" });
    return [];
  } catch (error) {
    return [String((error as { stdout?: unknown }).stdout ?? error)];
  }
}
