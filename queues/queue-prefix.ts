/**
 * Returns the BullMQ prefix of a queue. The name in braces is the hash tag of all its keys, so that on a cluster one node has
 * them all, as BullMQ's scripts require, and the queues are spread over the nodes.
 */
export function queuePrefix(prefix: string, queue: string): string {
  return `${prefix}:{${queue}}`;
}
