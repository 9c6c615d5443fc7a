import { connect as connectPlain } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { AbstractConnector, type Cluster, type RedisOptions } from "ioredis";

/** Interval between two attempts to find the owner, milliseconds. */
const RETRY_MS = 200;

/**
 * Returns the connector of a connection to the master that has a channel. It asks the cluster each time it connects, so that
 * the connection follows failovers and moved slots.
 */
export function createOwnerConnector(cluster: Cluster, channel: string) {
  return class OwnerConnector extends AbstractConnector {
    private readonly tls: RedisOptions["tls"];

    constructor(options: unknown) {
      const { tls, disconnectTimeout = 2_000 } = options as RedisOptions;
      super(disconnectTimeout);
      this.tls = tls;
    }

    async connect(emitError: (type: string, error: Error) => void) {
      this.connecting = true;
      while (this.connecting) {
        try {
          const { host, port } = await findOwner(cluster, channel);
          if (!this.connecting) break;
          this.stream = this.tls ? connectTls({ ...this.tls, host, port }) : connectPlain({ host, port });
          this.stream.once("error", (error) => {
            this.firstError = error;
          });
          return this.stream;
        } catch (error) {
          if (this.connecting) emitError("error", error as Error);
          await pause(RETRY_MS);
        }
      }
      throw new Error("Connection is closed.");
    }
  };
}

async function findOwner(cluster: Cluster, channel: string): Promise<{ host: string; port: number }> {
  // Redirections of this command correct what the client knows of the cluster.
  await cluster.exists(channel);
  const slot = await cluster.cluster("KEYSLOT", channel);
  const [owner] = cluster.slots[slot] ?? [];
  const colon = owner?.lastIndexOf(":") ?? -1;
  if (owner === undefined || colon === -1) throw new Error("the cluster does not serve the channel's slot");
  return { host: owner.slice(0, colon), port: Number(owner.slice(colon + 1)) };
}
