{{/*
Objects of a service: ServiceAccount, Service, Deployment, PodDisruptionBudget and HorizontalPodAutoscaler. The argument
is a dict with these keys: root (the root context of the chart), component (in names), part (key in the values),
command, plain (variables without secrets, YAML), annotations (optional), mounts and volumes (optional lists)
*/}}
{{- define "formgate.workload" -}}
{{- $values := get .root.Values .part -}}
{{- $checksums := include "formgate.checksums" . | fromYaml | default dict -}}
{{- $context := merge (dict "values" $values "annotations" (merge $checksums (.annotations | default dict))) . -}}
{{- if $values.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "formgate.metadata" (merge (dict "name" (include "formgate.serviceAccountName" $context) "ownAnnotations" $values.serviceAccount.annotations) $context) | nindent 2 }}
automountServiceAccountToken: false
---
{{- end }}
apiVersion: v1
kind: Service
metadata:
  {{- include "formgate.metadata" (merge (dict "ownAnnotations" .root.Values.service.annotations) $context) | nindent 2 }}
spec:
  type: ClusterIP
  {{- with .root.Values.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  {{- with .root.Values.service.ipFamilies }}
  ipFamilies: {{ toJson . }}
  {{- end }}
  {{- with .root.Values.service.trafficDistribution }}
  trafficDistribution: {{ . | quote }}
  {{- end }}
  selector:
    {{- include "formgate.selectorLabels" $context | nindent 4 }}
  ports:
    - name: http
      port: 8080
      targetPort: http
      protocol: TCP
      appProtocol: http
    - name: metrics
      port: 9090
      targetPort: metrics
      protocol: TCP
      appProtocol: http
---
{{ include "formgate.deployment" $context }}
{{- if $values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "formgate.metadata" $context | nindent 2 }}
spec:
  maxUnavailable: {{ $values.podDisruptionBudget.maxUnavailable }}
  # A pod that is not ready serves no requests, so it must not block a drain.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "formgate.selectorLabels" $context | nindent 6 }}
{{- end }}
{{- if $values.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "formgate.metadata" $context | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "formgate.partName" $context }}
  minReplicas: {{ int $values.autoscaling.minReplicas }}
  maxReplicas: {{ int $values.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ int $values.autoscaling.targetCPU }}
    {{- with $values.autoscaling.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $values.autoscaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The Deployment: the arguments of formgate.workload, and values (of the service) */}}
{{- define "formgate.deployment" -}}
{{- $drain := .root.Values.drain -}}
{{- $kept := .values.autoscaling.enabled | ternary (include "formgate.keptReplicas" .) "" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- $mark := $kept | empty | ternary dict (dict "formgate.dev/kept-replicas" "true") }}
  {{- include "formgate.metadata" (merge (dict "ownAnnotations" $mark) .) | nindent 2 }}
spec:
  {{- if not .values.autoscaling.enabled }}
  replicas: {{ int .values.replicas }}
  {{- else if $kept }}
  replicas: {{ $kept }}
  {{- end }}
  revisionHistoryLimit: 5
  # Migrations may take up to 10 minutes.
  progressDeadlineSeconds: 900
  selector:
    matchLabels:
      {{- include "formgate.selectorLabels" . | nindent 6 }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
  template:
    metadata:
      {{- include "formgate.podMetadata" . | nindent 6 }}
    spec:
      {{- include "formgate.podSpec" (merge (dict "sidecars" true) .) | nindent 6 }}
      {{- include "formgate.topologySpread" . | nindent 6 }}
      # The sum of sleepSeconds, deadlineSeconds, 5 s in which the process closes its connections, and 5 s of margin.
      terminationGracePeriodSeconds: {{ add (int $drain.sleepSeconds) (int $drain.deadlineSeconds) 10 }}
      containers:
        - {{- $env := include "formgate.env" (dict "root" .root "part" .part "plain" .plain "env" .values.env) }}
          {{- include "formgate.container" (dict "root" .root "name" .component "values" .values "args" (list .command) "env" $env) | nindent 10 }}
          ports:
            - name: http
              containerPort: 8080
              protocol: TCP
            - name: metrics
              containerPort: 9090
              protocol: TCP
          # The process migrates its database before it opens its ports, which may take up to 10 minutes.
          startupProbe:
            httpGet:
              path: /livez
              port: metrics
            periodSeconds: 1
            timeoutSeconds: 3
            failureThreshold: 660
          livenessProbe:
            httpGet:
              path: /livez
              port: metrics
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet:
              path: /readyz
              port: metrics
            periodSeconds: 5
            timeoutSeconds: 4
            failureThreshold: 2
          # Kubernetes removes a stopping pod from the load balancers. The pod keeps serving until they have noticed, and
          # then gets SIGTERM.
          lifecycle:
            preStop:
              sleep:
                seconds: {{ int $drain.sleepSeconds }}
          volumeMounts:
            {{- include "formgate.volumeMounts" .root | nindent 12 }}
            {{- with include "formgate.secretMount" . }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .mounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
            {{- with include "formgate.extraVolumeMounts" . }}
            {{- . | nindent 12 }}
            {{- end }}
      volumes:
        {{- include "formgate.volumes" .root | nindent 8 }}
        {{- with include "formgate.secretVolume" . }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with include "formgate.extraVolumes" . }}
        {{- . | nindent 8 }}
        {{- end }}
{{- end -}}

{{/*
The current number of pods, if the release had a fixed number before autoscaling was enabled; otherwise empty. The
arguments are those of formgate.deployment. If a manifest has no `replicas` but the previous one had, Helm removes the
field, and the API server sets 1. A release that began with autoscaling never has the field, because a rollback would
remove it. Without access to the cluster, as in `helm template`, the result is empty.
*/}}
{{- define "formgate.keptReplicas" -}}
{{- $name := include "formgate.partName" . -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $deployment := lookup "apps/v1" "Deployment" $namespace $name -}}
{{- if $deployment -}}
{{- /* With a client-side apply, the previous manifest had the field if autoscaling was off, or if it has this mark. */ -}}
{{- $hasMark := hasKey ($deployment.metadata.annotations | default dict) "formgate.dev/kept-replicas" -}}
{{- $had := or $hasMark (not (lookup "autoscaling/v2" "HorizontalPodAutoscaler" $namespace $name)) -}}
{{- /* With a server-side apply, managedFields shows whether Helm or autoscaling owns the field. */ -}}
{{- $appliers := list -}}
{{- range $deployment.metadata.managedFields -}}
{{- if eq .operation "Apply" -}}{{- $appliers = append $appliers . -}}{{- end -}}
{{- end -}}
{{- if $appliers -}}
{{- $had = false -}}
{{- range $appliers -}}
{{- if hasKey (dig "f:spec" dict .fieldsV1) "f:replicas" -}}{{- $had = true -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $had -}}
{{- max (int $deployment.spec.replicas) (int .values.autoscaling.minReplicas) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Annotations with checksums of the secrets in the values and of the certificates of authorities: dict root, part. A changed
checksum replaces the pods.
*/}}
{{- define "formgate.checksums" -}}
{{- $given := list -}}
{{- range $name, $secret := get (fromYaml (include "formgate.secretSources" .root)) .part -}}
{{- with $secret.source.value -}}{{- $given = append $given (print $name .) -}}{{- end -}}
{{- end -}}
{{- with $given }}
checksum/given: {{ join "," . | sha256sum | quote }}
{{- end }}
{{- with include "formgate.certificates" .root | fromJson }}
{{- with dig "data" $.root.Values.caCertificates.key "" (lookup "v1" .kind $.root.Release.Namespace .name) }}
checksum/certificates: {{ sha256sum . | quote }}
{{- end }}
{{- end }}
{{- end -}}
