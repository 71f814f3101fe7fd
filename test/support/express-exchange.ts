// Creates a request and its response with Express's own prototypes but without a connection, to test guards in memory.
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import express, { type Request, type Response } from 'express';
import type { Guard } from '../../src/service/http/http-app.ts';
import { Problem } from '../../src/service/http/problem.ts';

export interface ExchangeOptions {
  method?: string;
  /** Path and query of the request. */
  url?: string;
  /** Request headers, keyed by lower-case name. */
  headers?: Record<string, string>;
  /** Path parameters. */
  params?: Record<string, string>;
  locals?: Partial<Express.Locals>;
}

export interface Exchange {
  request: Request;
  response: Response;
}

const app = express().set('query parser', 'simple');

export function createExchange(options: ExchangeOptions = {}): Exchange {
  const { method = 'GET', url = '/', headers = {}, params = {}, locals = {} } = options;
  const message = Object.assign(new IncomingMessage(new Socket()), { method, url, params });
  Object.assign(message.headers, headers);
  const request = Object.setPrototypeOf(message, app.request) as Request;
  const plain = Object.assign(new ServerResponse(message), { locals, req: request });
  return { request, response: Object.setPrototypeOf(plain, app.response) as Response };
}

/** Returns the Problem with which the guard refuses the request, or undefined if the request passes. */
export async function refusal(guard: Guard, { request, response }: Exchange): Promise<Problem | undefined> {
  try {
    await guard.check(request, response);
    return undefined;
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
