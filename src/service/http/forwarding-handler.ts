// The base class for handlers that observe the events of an undici request and pass them on.
import type { IncomingHttpHeaders } from 'node:http';
import { DecoratorHandler, type Dispatcher } from 'undici';

type Controller = Dispatcher.DispatchController;

interface ForwardedHandler extends Dispatcher.DispatchHandler {
  onRequestStart(controller: Controller, context: object): void;
  onResponseStart(controller: Controller, status: number, headers: IncomingHttpHeaders, statusText?: string): void;
}

// undici's type definitions lack the methods of DecoratorHandler.
export const ForwardingHandler = DecoratorHandler as unknown as new (
  handler: Dispatcher.DispatchHandler,
) => ForwardedHandler;
