import type { Service } from "./service.ts";
import { waitUntil } from "./wait-until.ts";

export type ContainerOptions = {
  image: string;
  /** The port inside the container, and the port of this machine that it is published on. */
  inside: number;
  outside: number;
  command?: string[];
  entrypoint?: string[];
  env?: Record<string, string>;
  url: string;
  /** Called until it returns true. */
  ready: () => Promise<boolean>;
};

/**
 * Runs a service in a container. Returns undefined when no Docker engine answers. testcontainers is imported on demand,
 * because it is large and most machines find their services elsewhere.
 */
export async function startContainer(options: ContainerOptions): Promise<Service | undefined> {
  const { GenericContainer, getContainerRuntimeClient } = await import("testcontainers");
  const engine = await getContainerRuntimeClient().catch(() => undefined);
  if (engine === undefined) return undefined;
  let container = new GenericContainer(options.image)
    .withExposedPorts({ container: options.inside, host: options.outside })
    .withExtraHosts([{ host: "host.docker.internal", ipAddress: "host-gateway" }])
    .withEnvironment(options.env ?? {});
  if (options.command !== undefined) container = container.withCommand(options.command);
  if (options.entrypoint !== undefined) container = container.withEntrypoint(options.entrypoint);
  const started = await container.start();
  const isReady = () => waitUntil(`${options.image} answers`, options.ready, { withinMs: 60_000, everyMs: 100 });
  await isReady().catch(async (error) => {
    await started.stop({ remove: true, timeout: 1_000 });
    throw error;
  });
  const halt = (timeout: number) =>
    started.stop({ remove: false, removeVolumes: false, timeout }).then(() => undefined);
  return {
    url: options.url,
    pid: () => undefined,
    stop: () => halt(10_000),
    kill: () => halt(0),
    async start() {
      await started.restart();
      await isReady();
    },
    async close() {
      await started.stop({ remove: true, timeout: 1_000 }).catch(() => undefined);
    },
  };
}
