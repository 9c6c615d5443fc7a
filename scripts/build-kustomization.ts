import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";

/** A Kubernetes object as JSON. */
export type Manifest = {
  apiVersion: string;
  kind: string;
  metadata: Json & { name: string };
  [member: string]: unknown;
};
type Json = { [member: string]: unknown };

/** The members of a kustomization that this project uses. kustomize knows more: a new one has to be added here. */
const Kustomization = z.strictObject({
  apiVersion: z.literal("kustomize.config.k8s.io/v1beta1"),
  kind: z.literal("Kustomization"),
  namespace: z.string().optional(),
  nameSuffix: z.string().default(""),
  resources: z.array(z.string()),
  labels: z
    .array(z.strictObject({ pairs: z.record(z.string(), z.string()), includeSelectors: z.literal(true) }))
    .default([]),
  patches: z.array(z.strictObject({ path: z.string() })).default([]),
  replicas: z.array(z.strictObject({ name: z.string(), count: z.number().int() })).default([]),
  images: z.array(z.strictObject({ name: z.string(), newName: z.string(), newTag: z.string() })).default([]),
});

/**
 * Returns the objects that `kubectl kustomize <dir>` prints, in another order. Supports what this project uses, so that the check
 * needs no kubectl. Throws for anything else.
 */
export function buildKustomization(dir: string): Manifest[] {
  const settings = Kustomization.parse(parse(readFileSync(join(dir, "kustomization.yaml"), "utf8")));
  const { nameSuffix, namespace, replicas, images } = settings;
  const resources = settings.resources.flatMap((path) => readResources(join(dir, path)));
  const patches = settings.patches.flatMap(({ path }) => readManifests(join(dir, path)));
  const patched = patches.reduce((all, patch) => applyPatch(all, patch), resources);
  return patched.map((one) => {
    const isScaled = one.kind === "Deployment" || one.kind === "StatefulSet";
    const count = replicas.find(({ name }) => isScaled && name === one.metadata.name)?.count;
    const labels = Object.assign({}, ...settings.labels.map(({ pairs }) => pairs)) as Record<string, string>;
    const manifest = addLabels(
      count === undefined ? one : (merge(one, { spec: { replicas: count } }) as Manifest),
      labels,
    );
    const place = namespace === undefined || manifest.kind === "Namespace" ? {} : { namespace };
    const metadata = { ...manifest.metadata, ...place, name: manifest.metadata.name + nameSuffix };
    return replaceImages({ ...manifest, metadata }, images) as Manifest;
  });
}

function readResources(path: string): Manifest[] {
  return statSync(path).isDirectory() ? buildKustomization(path) : readManifests(path);
}

/** Returns the documents of a YAML file. */
function readManifests(path: string): Manifest[] {
  return parseAllDocuments(readFileSync(path, "utf8")).map((document) => {
    if (document.errors.length > 0) throw new Error(`${path}: ${document.errors[0]?.message}`);
    return document.toJS() as Manifest;
  });
}

/** Merges a patch into the object of its kind and name. Throws when there is none. */
function applyPatch(all: readonly Manifest[], patch: Manifest): Manifest[] {
  const isTarget = ({ kind, metadata }: Manifest) => kind === patch.kind && metadata.name === patch.metadata.name;
  if (!all.some(isTarget)) throw new Error(`a patch names ${patch.kind} ${patch.metadata.name}, which does not exist`);
  return all.map((one) => (isTarget(one) ? (merge(one, patch) as Manifest) : one));
}

/** Merges as a strategic merge patch: objects by member, lists of objects by `mountPath` or `name`, anything else is replaced. */
function merge(base: unknown, patch: unknown): unknown {
  if (Array.isArray(base) && Array.isArray(patch)) return mergeLists(base, patch);
  if (!isObject(base) || !isObject(patch)) return patch;
  const merged = Object.entries(patch).map(([member, value]) => [member, merge(base[member], value)]);
  return { ...base, ...Object.fromEntries(merged) };
}

function mergeLists(base: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const keyOf = (item: unknown) => (isObject(item) ? (item["mountPath"] ?? item["name"]) : undefined);
  if (patch.some((item) => keyOf(item) === undefined)) return [...patch];
  const isNew = (item: unknown) => !base.some((one) => keyOf(one) === keyOf(item));
  const merged = base.map((one) => merge(one, patch.find((item) => keyOf(item) === keyOf(one)) ?? one));
  return [...merged, ...patch.filter(isNew)];
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Adds labels to an object, to its pods and to its selectors. */
function addLabels(manifest: Manifest, labels: Record<string, string>): Manifest {
  if (Object.keys(labels).length === 0) return manifest;
  const selector = { selector: { matchLabels: labels } };
  const spread = (constraint: unknown) => merge(constraint, { labelSelector: { matchLabels: labels } });
  const template = (manifest["spec"] as Json)["template"] as Json | undefined;
  const constraints = ((template?.["spec"] as Json | undefined)?.["topologySpreadConstraints"] ?? []) as unknown[];
  const pods = { metadata: { labels }, spec: { topologySpreadConstraints: constraints.map(spread) } };
  const spec = template === undefined ? selector : { ...selector, template: pods };
  return merge(manifest, { metadata: { labels }, spec }) as Manifest;
}

/** Replaces `image` members that are one of these names. */
function replaceImages(value: unknown, images: readonly { name: string; newName: string; newTag: string }[]): unknown {
  if (Array.isArray(value)) return value.map((item) => replaceImages(item, images));
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([member, inner]) => {
    const image = member === "image" ? images.find(({ name }) => name === inner) : undefined;
    return [member, image ? `${image.newName}:${image.newTag}` : replaceImages(inner, images)];
  });
  return Object.fromEntries(entries);
}
